"""How the command words durations, progress and results."""

import io
from datetime import UTC, datetime
from typing import Any

import pytest
from rich.console import Console

from rankzero.cli import exits
from rankzero.cli.following import describe, follow
from rankzero.cli.output import batch_of, in_words, progress_of, training_of
from rankzero.errors import EmbeddedError, RankzeroError, RefusedError, UnreachableError, UsageError
from rankzero.models import Job


def job(state: str = "running", **fields: Any) -> Job:
    at = datetime.now(UTC)
    known = {"id": 7, "name": "n", "intent": "run", "attempt": 1, "priority": 50, "labels": {}, "world_size": 2}
    absent = {"reason": None, "failure": None, "progress": None, "started_at": None, "finished_at": None}
    spec = {"device": "cuda:0,cuda:1", "train": {}}
    return Job.model_validate({**known, **absent, "state": state, "spec": spec, "created_at": at, **fields})


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-1, "0s"), (0.4, "0s"), (59.4, "59s"), (59.6, "1m 0s"), (61, "1m 1s"), (3600, "1h 0m"), (90_061, "1d 1h")],
)
def test_a_duration_shows_its_two_largest_units(seconds: float, words: str) -> None:
    assert in_words(seconds) == words


@pytest.mark.parametrize(
    ("asked", "progress", "words"),
    [
        (-1, None, "batch -1"),
        (64, {"batch_per_rank": 32}, "batch 64"),  # an older service tells no more
        (64, {"batch": 64, "batch_per_rank": 64, "accumulate": 1}, "batch 64"),
        (-1, {"batch": 96, "batch_per_rank": 48, "accumulate": 1}, "batch 96 (for -1), 48 per rank"),
        (64, {"batch": 64, "batch_per_rank": 32, "accumulate": 4}, "batch 64, 32 per rank, 4 batches per step"),
    ],
)
def test_a_batch_is_shown_as_it_is_trained_with(asked: int, progress: dict[str, int] | None, words: str) -> None:
    spec = {"device": "cuda:0,cuda:1", "train": {"batch": asked}}
    assert batch_of(job(spec=spec, progress=progress)) == words


def test_a_program_of_the_users_own_is_shown_as_it_is_run_and_by_the_steps_it_tells_of() -> None:
    options = {"script": "/home/me/my train.py", "module": None, "args": ["--epochs", "3"]}
    spec = {"device": "cpu", "train": {"recipe": "script", "options": options}}
    told = job(spec=spec, progress={"step": 7, "total_steps": None, "epoch": 1, "values": {"loss": 0.5}})
    assert training_of(told) == "python '/home/me/my train.py' --epochs 3"
    assert (progress_of(told), describe(told, None)) == ("step 7", "step 7  loss 0.5000")
    assert progress_of(job(spec=spec, progress={"step": 0, "total_steps": None})) == "-"


@pytest.mark.parametrize(("state", "code"), [("succeeded", 0), ("failed", 1), ("cancelled", 3)])
def test_the_final_state_of_a_job_is_an_exit_code(state: str, code: int) -> None:
    assert exits.of_job(job(state)) == code


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("x"), 2),
        (RefusedError("x", status=422), 2),
        (UnreachableError("x"), 4),
        (EmbeddedError("x"), 1),
    ],
)
def test_an_error_is_an_exit_code(error: RankzeroError, code: int) -> None:
    assert exits.of_error(error) == code


def test_without_a_terminal_a_line_is_written_for_each_new_state_and_epoch() -> None:
    def at_step(step: int, epoch: int) -> Job:
        values = {"train/loss": 0.25, "val/accuracy": None}
        progress = {"step": step, "total_steps": 8, "epoch": epoch, "epochs": 2, "values": values}
        return job(progress=progress)

    updates = [
        job("queued", reason="waits for cuda:0 (job 3) on alpha"),
        at_step(1, 1),
        at_step(2, 1),
        at_step(5, 2),
        job("succeeded"),
    ]
    output = io.StringIO()
    last = follow(updates, Console(file=output, width=200))
    assert last.state == "succeeded"
    lines = output.getvalue().splitlines()
    assert lines[0] == "job 7 queued  waits for cuda:0 (job 3) on alpha"
    assert lines[1] == "job 7 running  epoch 1/2  step 1/8  loss 0.2500"
    assert lines[2].startswith("job 7 running  epoch 2/2  step 5/8  loss 0.2500  ETA ")
    assert lines[3:] == ["job 7 succeeded"]
