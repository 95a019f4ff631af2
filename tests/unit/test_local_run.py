"""The last words of a run that is launched from a terminal."""

from pathlib import Path

import pytest

from trainer.journal import CheckpointSaved, Completed, JournalWriter
from trainer.local_run import completion
from trainer.run_dir import RunDir


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
