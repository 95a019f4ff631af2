"""The last words of a run that is launched from a terminal."""

from pathlib import Path

import pytest

from trainer.command import _tell
from trainer.error_report import ErrorReport
from trainer.errors import Cause, DataError
from trainer.journal import CheckpointSaved, Completed, JournalWriter
from trainer.local_run import completion
from trainer.outcome import Outcome
from trainer.run_dir import EXIT_FAILED, RunDir


@pytest.mark.parametrize(("best", "said"), [(True, "best"), (False, "last")])
def test_only_a_checkpoint_that_was_marked_as_the_best_is_called_that(best: bool, said: str, tmp_path: Path) -> None:
    run_dir, values = RunDir(tmp_path), {"accuracy": 0.5}
    journal = JournalWriter(run_dir.journal)
    journal.append(CheckpointSaved, step=3, epoch=1, path="3.pt", sha256="", size_bytes=0, best=best, values=values)
    journal.append(Completed, step=4, epoch=1, values={"accuracy": 0.25}, best_checkpoint="3.pt")
    completed = run_dir.completed()
    assert completed is not None
    assert completion(run_dir, completed) == (
        f"completed: accuracy 0.2500; {said} checkpoint {tmp_path / '3.pt'} (step 3: accuracy 0.5000)"
    )


@pytest.mark.parametrize(
    ("message", "said"),
    [("data: a class is empty", "data: a class is empty"), ("0.jpg: no image", "data: 0.jpg: no image")],
    ids=["names the field", "names a file"],
)
def test_a_run_that_failed_tells_its_cause_once(
    message: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    error = ErrorReport.of(DataError(message), cause=Cause.DATA, rank=1, traceback="Traceback …")
    assert _tell(Outcome(error=error), RunDir(tmp_path)) == EXIT_FAILED
    assert capsys.readouterr().err == f"{said}\n"
