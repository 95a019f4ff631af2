"""The logs that a trial of the faults is judged by: a defect is one, wherever a process of the service tells of it."""

from pathlib import Path

import pytest

from tests.faults.matrix.logs import Logs

OUTAGE = '{"error": "connection refused", "event": "database_away", "level": "warning"}\n'
DEFECT = '{"event": "link_round_failed", "level": "error", "exception": [{"exc_type": "ValueError"}]}\n'
CRASH = 'Traceback (most recent call last):\n  File "worker/supervisor.py", line 1, in main\nValueError: ours\n'


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The directory of a run on the host `alpha`."""
    run = tmp_path / "alpha" / "job-1" / "attempt-1-abcdef01"
    (run / "ranks").mkdir(parents=True)
    return run


@pytest.mark.parametrize("told", [DEFECT, CRASH], ids=["defect", "crash"])
@pytest.mark.parametrize("log", ["alpha.log", "api.log", "alpha/job-1/attempt-1-abcdef01/supervisor.log"])
@pytest.mark.usefixtures("run")
def test_a_defect_is_found_among_other_lines(log: str, told: str, tmp_path: Path) -> None:
    (tmp_path / log).write_text(OUTAGE + told + OUTAGE)

    with pytest.raises(AssertionError, match=f"{log} tells of a defect"):
        Logs(tmp_path).assert_no_defect_was_told()


def test_an_outage_is_none_nor_is_what_a_rank_raises(run: Path, tmp_path: Path) -> None:
    (tmp_path / "alpha.log").write_text(OUTAGE)
    (run / "ranks" / "0.log").write_text(CRASH)

    Logs(tmp_path).assert_no_defect_was_told()


def test_a_line_is_judged_once_and_when_it_is_whole(run: Path, tmp_path: Path) -> None:
    logs = Logs(tmp_path)
    log = run / "supervisor.log"
    log.write_text(OUTAGE + DEFECT[:20])
    logs.assert_no_defect_was_told()

    log.write_text(OUTAGE + DEFECT)
    with pytest.raises(AssertionError, match="tells of a defect"):
        logs.assert_no_defect_was_told()

    logs.assert_no_defect_was_told()
