"""Saves that are killed: at every system call of one, and at instants drawn from all that a start and a save do.

Each life of the run is a process forked from the test, which kills itself with SIGKILL. The next life begins in the
same run directory with whatever that left.
"""

import dataclasses
import io
import json
import os
import random
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch

from tests.unit.test_checkpoints import checkpoint
from trainer.checkpoints import CheckpointFolder, load_checkpoint
from trainer.config import TrainConfig
from trainer.journal import CheckpointSaved, JournalWriter, read_records
from trainer.run_dir import RunConfig, RunDir

KILLS = 50
"""How many kills at drawn instants a run has to survive."""
SYSTEM_CALLS = {"open", "write", "fsync", "link", "replace", "unlink", "ftruncate", "close", "flush"}
"""What a save asks of the system, by the names of Python's functions for it."""
WRITES = {"write_record", "write_end_of_file"}
"""What torch writes the parts of a file with."""


@dataclass
class Death:
    """Kills this process at the `at`-th event that it counts while it watches; without `at` it only counts."""

    at: int | None = None
    every_event: bool = False
    """Count each call and each return of any function, not only those around system calls."""
    count: int = 0
    seen: list[str] = field(default_factory=list)
    """The events around system calls, in words."""

    def watch(self) -> None:
        sys.setprofile(self._look)

    def _look(self, _frame: FrameType, event: str, function: Any) -> None:
        is_system_call = event.startswith("c_") and function.__name__ in SYSTEM_CALLS | WRITES
        if not self.every_event and not is_system_call:
            return
        if self.count == self.at:
            os.kill(os.getpid(), signal.SIGKILL)
        self.count += 1
        if is_system_call:
            self.seen.append(f"{'before' if event == 'c_call' else 'after'} {function.__name__}")


@dataclass
class Life:
    """What was heard of a process before it was killed, or ended."""

    returned: int | None
    """The last step whose save returned."""
    count: int
    """How many events it counted, where it lived to tell."""
    seen: list[str]
    """Those around system calls."""
    was_killed: bool


def live(run_dir: RunDir, death: Death, *, links: bool, watch_all: bool = False) -> Life:
    """Fork a process that continues the run and saves twice, the second time watched by death, or `watch_all`."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        # Python 3.12 warns of threads, such as those of torch, which the child makes no use of.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        os.close(reader)
        _end_with(writer, lambda tell: _continue_and_save(run_dir, death, tell, links=links, watch_all=watch_all))
    os.close(writer)
    with os.fdopen(reader) as pipe:
        told = [json.loads(line) for line in pipe]
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert status in (0, -signal.SIGKILL), told
    last: dict[str, Any] = told[-1] if told else {}
    return Life(last.get("returned"), last.get("count", 0), last.get("seen", []), was_killed=status != 0)


def _end_with(writer: int, body: Callable[[Callable[[dict[str, Any]], None]], None]) -> None:
    """Do the work of a forked process and end it, past all that it inherited from the test."""

    def tell(what: dict[str, Any]) -> None:
        os.write(writer, json.dumps(what).encode() + b"\n")

    try:
        body(tell)
    except BaseException:  # noqa: BLE001  # the test has to hear of it, and pytest must not run twice
        tell({"error": traceback.format_exc()})
        os._exit(1)
    os._exit(0)


def _continue_and_save(
    run_dir: RunDir, death: Death, tell: Callable[[dict[str, Any]], None], *, links: bool, watch_all: bool
) -> None:
    if not links:
        os.link = _no_links  # type: ignore[assignment]  # a file system without links
    if watch_all:
        death.watch()
    folder = CheckpointFolder(run_dir, JournalWriter(run_dir.journal))
    step = 0
    if last := run_dir.last_checkpoint():
        path = run_dir.path / last.path
        folder.continue_from(path, load_checkpoint(path, verify_digest=True))
        step = last.step
    folder.save(trained(step + 1))
    tell({"returned": step + 1})
    death.watch()
    folder.save(trained(step + 2))
    sys.setprofile(None)
    tell({"returned": step + 2, "count": death.count, "seen": death.seen})


def _no_links(*_paths: object) -> None:
    raise PermissionError("this file system has no links")


def trained(step: int) -> Any:
    """A checkpoint whose weights tell its step; every third is the best so far, so that the best and others go."""
    metric = (0.1, 0.5, 0.3)[step % 3] + step / 10_000
    return checkpoint(step, metric=metric, model={"weights": torch.full((20_000,), float(step))})


def assert_whole(run_dir: RunDir, life: Life, *, links: bool, instant: str) -> None:
    """What the next start finds: the last committed checkpoint, the one before, the best, and nothing else."""
    journal = JournalWriter(run_dir.journal)
    CheckpointFolder(run_dir, journal)
    journal.close()
    last = run_dir.last_checkpoint()
    if last is None:
        assert life.returned is None, instant
        return
    assert last.step >= (life.returned or 0), instant
    loaded = load_checkpoint(run_dir.path / last.path, verify_digest=True)
    assert loaded.step == last.step, instant
    assert torch.equal(loaded.model["weights"], torch.full((20_000,), float(last.step))), instant
    assert loaded.best_file is not None, instant
    best = load_checkpoint(run_dir.checkpoints / loaded.best_file, verify_digest=True)
    assert best.metric == loaded.best_metric, instant
    saves = [record for record in read_records(run_dir.journal) if isinstance(record, CheckpointSaved)]
    expected = {Path(record.path).name for record in saves[-2:]} | {loaded.best_file}
    left = {path.name for path in run_dir.checkpoints.iterdir()}
    # Without links nothing tells a file that was named, and not yet announced, from one that a user has put there.
    assert left == expected if links else left >= expected, instant
    assert not any(name.endswith(".tmp") for name in left), instant


@pytest.fixture
def run_dir(tmp_path: Path) -> RunDir:
    torch.set_num_threads(1)  # a forked process has none of the threads that torch would share work with
    torch.save(dataclasses.asdict(trained(0)), io.BytesIO())  # what torch imports late, it imports here, once
    run_dir = RunDir(tmp_path / "run")
    run_dir.create(RunConfig(train=TrainConfig(model="resnet18", data="digits"), devices=("cpu",)))
    return run_dir


@pytest.mark.parametrize("links", [True, False])
def test_a_save_killed_before_or_after_any_of_its_system_calls_leaves_the_last_committed_one(
    run_dir: RunDir, links: bool
) -> None:
    for _ in range(3):  # from here on a save has an earlier one to delete
        life = live(run_dir, Death(), links=links)
    instants = life.seen
    phases = {"link" if links else "replace", "open", "write_record", "flush", "fsync", "write", "unlink"}
    assert phases <= {instant.split()[1] for instant in instants}
    for number, instant in enumerate(instants):
        life = live(run_dir, Death(at=number), links=links)
        assert life.was_killed, instant
        assert_whole(run_dir, life, links=links, instant=f"{instant}, event {number} of {instants}")


def test_a_run_killed_at_fifty_instants_of_its_starts_and_saves_continues_from_the_last_committed_one(
    run_dir: RunDir,
) -> None:
    life = live(run_dir, Death(every_event=True), links=True, watch_all=True)
    drawn = random.Random(0)
    killed = 0
    while killed < KILLS:
        number = drawn.randrange(life.count)
        ended = live(run_dir, Death(number, every_event=True), links=True, watch_all=True)
        killed += ended.was_killed
        assert_whole(run_dir, ended, links=True, instant=f"event {number}")
