"""What the processes of the service wrote of its defects: it tells of a fault of the world in other words."""

import re
from pathlib import Path

OF_PROCESSES = ("*.log", "*/job-*/attempt-*/**/supervisor.log")
"""Logs of workers and of the API, and of supervisors; those of ranks, which faults make, are none of these."""
DEFECTS = re.compile(
    r"^Traceback \(most recent call last\)"
    r"|\b(?:step|link_round|copy_round|look|telemetry|request)_failed\b|\bplacement_not_cared_for\b",
    re.MULTILINE,
)
SHOWN_CHARS = 3000


class Logs:
    """The logs below a folder, each line of which is judged once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, int] = {}
        """Bytes that were judged before, by file."""

    def assert_no_defect_was_told(self) -> None:
        """Assert that since the last look nothing was written of an exception that nobody had expected."""
        for path in sorted({path for pattern in OF_PROCESSES for path in self._folder.glob(pattern)}):
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                news = file.read()
            news = news[: news.rfind(b"\n") + 1]  # the last line may not be whole yet
            self._read[path] = self._read.get(path, 0) + len(news)
            text = news.decode(errors="replace")
            told = DEFECTS.search(text)
            assert told is None, f"{path} tells of a defect:\n{text[max(0, told.start() - 200) :][:SHOWN_CHARS]}"
