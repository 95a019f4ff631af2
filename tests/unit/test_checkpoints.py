"""Checkpoints: committed whole or not at all, and refused where they do not fit."""

import dataclasses
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn, optim

from tests.limits import file_size_limit
from trainer import durable_files
from trainer.checkpoints import (
    Checkpoint,
    CheckpointFolder,
    load_checkpoint,
    non_finite,
    restore_optimizer,
    restore_weights,
)
from trainer.config import TrainConfig
from trainer.errors import CheckpointError, NonFiniteLossError
from trainer.journal import CheckpointSaved, JournalWriter, read_journal
from trainer.run_dir import RunConfig, RunDir


@pytest.fixture
def run_dir(tmp_path: Path) -> RunDir:
    run_dir = RunDir(tmp_path / "run")
    run_dir.create(RunConfig(train=TrainConfig(model="resnet18", data="digits"), devices=("cpu",)))
    return run_dir


@pytest.fixture
def folder(run_dir: RunDir) -> CheckpointFolder:
    return CheckpointFolder(run_dir, JournalWriter(run_dir.journal))


def model() -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(100, 2)


def checkpoint(step: int, *, metric: float | None = None, loss: float = 1.0, **changes: Any) -> Checkpoint:
    linear = model()
    values: dict[str, Any] = {
        "model": linear.state_dict(),
        "optimizer": optim.SGD(linear.parameters(), lr=0.1, momentum=0.9).state_dict(),
        "epoch": 0,
        "step_in_epoch": step,
        "step": step,
        "steps_per_epoch": 100,
        "seed": 0,
        "world_size": 2,
        "config": {},
        "class_names": ("a", "b"),
        "samples": "2 train, 1 val",
        "values": {} if metric is None else {"val/accuracy": metric},
        "metric": None if metric is None else (metric, -loss),
        "unaveraged": None,
    }
    return Checkpoint(**(values | changes))


def saved(run_dir: RunDir) -> list[CheckpointSaved]:
    return [record for record in read_journal(run_dir.journal)[0] if isinstance(record, CheckpointSaved)]


def files(run_dir: RunDir) -> list[str]:
    return sorted(path.name for path in run_dir.checkpoints.iterdir())


def test_the_last_two_and_the_best_are_kept(run_dir: RunDir, folder: CheckpointFolder) -> None:
    for step, metric in ((1, 0.5), (2, 0.9), (3, 0.7), (4, None), (5, 0.9)):
        folder.save(checkpoint(step, metric=metric))
    assert files(run_dir) == ["step-00000002.pt", "step-00000004.pt", "step-00000005.pt"]
    assert [record.best for record in saved(run_dir)] == [True, True, False, False, False]
    assert folder.best_path == "checkpoints/step-00000002.pt"
    last = load_checkpoint(run_dir.checkpoints / "step-00000005.pt", verify_digest=True)
    assert (last.step, last.best_file, last.best_metric) == (5, "step-00000002.pt", (0.9, -1.0))


class DeathInTheJournal:
    """A journal in which the process is killed: when it is told of a checkpoint, before or after it has written."""

    def __init__(self, journal: JournalWriter, *, written: bool) -> None:
        self._journal, self._written = journal, written

    def append(self, kind: Any, *, durable: bool = False, **fields: Any) -> None:
        if self._written:
            self._journal.append(kind, durable=durable, **fields)
        os.kill(os.getpid(), signal.SIGKILL)


def die_in_save(run_dir: RunDir, *, written: bool) -> None:
    journal = DeathInTheJournal(JournalWriter(run_dir.journal), written=written)
    CheckpointFolder(run_dir, journal).save(checkpoint(2))


def test_of_equal_metrics_the_lower_loss_is_the_best(run_dir: RunDir, folder: CheckpointFolder) -> None:
    for step, loss in ((1, 0.5), (2, 0.25), (3, 0.25), (4, 0.75)):
        folder.save(checkpoint(step, metric=1.0, loss=loss))
    assert folder.best_path == "checkpoints/step-00000002.pt"
    assert [record.best for record in saved(run_dir)] == [True, True, False, False]


@pytest.mark.parametrize(("written", "left"), [(False, [1]), (True, [1, 2])])
def test_what_a_crash_left_is_removed_at_the_next_start_and_no_file_of_the_user(
    run_dir: RunDir, folder: CheckpointFolder, written: bool, left: list[int]
) -> None:
    folder.save(checkpoint(1, metric=0.5))
    code = f"from {__name__} import *; die_in_save(RunDir(Path({str(run_dir.path)!r})), written={written})"
    killed = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert files(run_dir) == [".step-00000002.pt.tmp", "step-00000001.pt", "step-00000002.pt"]
    (run_dir.checkpoints / ".step-00000003.pt.tmp").write_bytes(b"half")
    (run_dir.checkpoints / "step-00000092.pt").write_bytes(b"the user's")
    again = CheckpointFolder(run_dir, JournalWriter(run_dir.journal))
    assert files(run_dir) == [f"step-{step:08}.pt" for step in (*left, 92)]
    again.save(checkpoint(3))
    assert (run_dir.checkpoints / "step-00000092.pt").read_bytes() == b"the user's"


def test_a_checkpoint_taken_back_and_written_anew_is_kept_at_the_next_start(
    run_dir: RunDir, folder: CheckpointFolder
) -> None:
    for step in (1, 2, 3, 1):  # killed at step 3, continued from an earlier point, and at step 1 once more
        folder.save(checkpoint(step))
    CheckpointFolder(run_dir, JournalWriter(run_dir.journal))
    assert files(run_dir) == ["step-00000001.pt", "step-00000003.pt"]


def test_a_name_never_stands_for_another_file(run_dir: RunDir, folder: CheckpointFolder) -> None:
    folder.save(checkpoint(1))
    folder.save(checkpoint(1, metric=0.5))
    assert [record.path for record in saved(run_dir)] == [
        "checkpoints/step-00000001.pt",
        "checkpoints/step-00000001-2.pt",
    ]


def test_a_save_that_fails_leaves_the_one_before(run_dir: RunDir, folder: CheckpointFolder) -> None:
    folder.save(checkpoint(1, metric=0.5))
    with file_size_limit(1000), pytest.raises((OSError, RuntimeError)):
        folder.save(checkpoint(2, metric=0.6))
    assert files(run_dir) == ["step-00000001.pt"]
    assert len(saved(run_dir)) == 1
    folder.save(checkpoint(2, metric=0.6))
    assert folder.best_path == "checkpoints/step-00000002.pt"


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_never_saved(run_dir: RunDir, folder: CheckpointFolder, value: float) -> None:
    ruined = model()
    with torch.no_grad():
        ruined.bias[0] = value
    with pytest.raises(NonFiniteLossError, match=r"step 3 .*bias"):
        folder.save(checkpoint(3, model=ruined.state_dict()))
    assert files(run_dir) == []


def test_state_is_restored_exactly(run_dir: RunDir, folder: CheckpointFolder) -> None:
    trained = model()
    optimizer = optim.SGD(trained.parameters(), lr=0.1, momentum=0.9)
    trained(torch.ones(1, 100)).sum().backward()
    optimizer.step()
    folder.save(checkpoint(1, model=trained.state_dict(), optimizer=optimizer.state_dict()))
    other = nn.Linear(100, 2)
    other_optimizer = optim.SGD(other.parameters(), lr=0.5, momentum=0.9)
    path = run_dir.checkpoints / "step-00000001.pt"
    loaded = load_checkpoint(path)
    restore_weights(path, loaded.model, other)
    restore_optimizer(path, loaded, other_optimizer)
    assert torch.equal(other.weight, trained.weight)
    assert torch.equal(
        other_optimizer.state[other.weight]["momentum_buffer"], optimizer.state[trained.weight]["momentum_buffer"]
    )


def test_a_restored_optimizer_keeps_the_options_it_was_built_with(run_dir: RunDir, folder: CheckpointFolder) -> None:
    folder.save(checkpoint(1))
    path = run_dir.checkpoints / "step-00000001.pt"
    other = model()
    optimizer = optim.SGD(other.parameters(), lr=0.5, momentum=0.5, weight_decay=0.25)
    restore_optimizer(path, load_checkpoint(path), optimizer)
    assert {name: optimizer.param_groups[0][name] for name in ("lr", "momentum", "weight_decay")} == {
        "lr": 0.5,
        "momentum": 0.5,
        "weight_decay": 0.25,
    }


def test_a_checkpoint_of_another_model_names_file_and_first_misfit(run_dir: RunDir, folder: CheckpointFolder) -> None:
    folder.save(checkpoint(1))
    path = run_dir.checkpoints / "step-00000001.pt"
    other = nn.Linear(100, 3)
    with pytest.raises(CheckpointError, match=r"step-00000001\.pt.*weight is of shape \(2, 100\) there"):
        restore_weights(path, load_checkpoint(path).model, other)


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "text"])
def test_a_damaged_checkpoint_is_named(run_dir: RunDir, folder: CheckpointFolder, damage: str) -> None:
    folder.save(checkpoint(1))
    path = run_dir.checkpoints / "step-00000001.pt"
    content = bytearray(path.read_bytes())
    if damage == "cut":
        content = content[: len(content) // 2]
    elif damage == "flipped":
        content[len(content) // 2] ^= 0xFF
    else:
        content = bytearray(b"" if damage == "empty" else b"some text")
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"step-00000001\.pt"):
        load_checkpoint(path, verify_digest=True)


@pytest.mark.parametrize("damage", ["cut", "empty", "text"])
def test_a_damaged_checkpoint_without_a_journal_is_named(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "model.pt"
    torch.save({"format": 2}, path)
    path.write_bytes({"cut": path.read_bytes()[:200], "empty": b"", "text": b"some text"}[damage])
    with pytest.raises(CheckpointError, match=r"model\.pt"):
        load_checkpoint(path)


def test_a_checkpoint_that_would_run_code_is_refused(tmp_path: Path) -> None:
    torch.save({"format": 2, "model": print}, tmp_path / "evil.pt")
    with pytest.raises(CheckpointError, match=r"evil\.pt"):
        load_checkpoint(tmp_path / "evil.pt")


@pytest.mark.parametrize("payload", [{}, [1, 2], {"format": 99}, {"format": 2, "model": {}}, {"state_dict": {}}])
def test_some_other_program_s_file_is_refused(payload: object, tmp_path: Path) -> None:
    torch.save(payload, tmp_path / "other.pt")
    with pytest.raises(CheckpointError, match=r"other\.pt"):
        load_checkpoint(tmp_path / "other.pt")


def test_a_missing_checkpoint_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"gone\.pt"):
        load_checkpoint(tmp_path / "gone.pt")


def test_every_field_of_a_checkpoint_survives_a_file(run_dir: RunDir, folder: CheckpointFolder) -> None:
    written = checkpoint(1, metric=0.25)
    folder.save(written)
    read = load_checkpoint(run_dir.checkpoints / "step-00000001.pt")
    same = [
        entry.name
        for entry in dataclasses.fields(Checkpoint)
        if entry.name not in ("model", "best_file", "best_metric")
    ]
    assert [getattr(read, name) for name in same] == [getattr(written, name) for name in same]


@pytest.mark.parametrize("release", [2, 3])
def test_a_checkpoint_of_an_earlier_release_is_read(run_dir: RunDir, folder: CheckpointFolder, release: int) -> None:
    folder.save(checkpoint(1, metric=0.25))
    path = run_dir.checkpoints / "step-00000001.pt"
    payload = torch.load(path, weights_only=True) | {"format": release}
    for name in ("stale_epochs", "scaler", "skipped_steps"):
        del payload[name]
    expected: tuple[float, ...] = (0.25, -1.0)
    if release == 2:
        del payload["unaveraged"]
        payload |= {"metric": 0.25, "best_metric": 0.25}
        expected = (0.25,)
    torch.save(payload, path)
    read = load_checkpoint(path)
    assert (read.step, read.metric, read.best_metric, read.unaveraged) == (1, expected, expected, None)
    assert (read.stale_epochs, read.scaler, read.skipped_steps) == (0, None, 0)


@pytest.mark.parametrize(
    ("field", "value"), [("config", None), ("model", None), ("model", {"weight": 1}), ("step", -5), ("epoch", "many")]
)
def test_a_checkpoint_that_no_run_has_written_is_refused_by_the_field(
    field: str, value: object, run_dir: RunDir, folder: CheckpointFolder, tmp_path: Path
) -> None:
    folder.save(checkpoint(1))
    payload = torch.load(run_dir.checkpoints / "step-00000001.pt", weights_only=True) | {field: value}
    torch.save(payload, tmp_path / "handmade.pt")
    with pytest.raises(CheckpointError, match=rf"handmade\.pt: not a checkpoint that a run has written: {field}"):
        load_checkpoint(tmp_path / "handmade.pt")


def test_a_mask_that_is_never_finite_is_no_fault_of_the_weights(run_dir: RunDir) -> None:
    masked = model()
    masked.register_buffer("mask", torch.full((2, 2), float("-inf")))
    assert non_finite(masked) == ("mask",)
    folder = CheckpointFolder(run_dir, JournalWriter(run_dir.journal), never_finite=non_finite(masked))
    folder.save(checkpoint(1, model=masked.state_dict()))
    with pytest.raises(NonFiniteLossError, match="weight"):
        folder.save(checkpoint(2, model=masked.state_dict() | {"weight": torch.full((2, 100), float("nan"))}))


def test_a_rank_that_saves_says_that_it_is_alive_for_each_part_that_is_written_and_read_back(run_dir: RunDir) -> None:
    signs: list[float] = []
    journal = JournalWriter(run_dir.journal)
    CheckpointFolder(run_dir, journal, alive=lambda: signs.append(0)).save(checkpoint(1))
    small = len(signs)
    signs.clear()
    large = {f"tensor {number}": torch.zeros(2**18) for number in range(8)}
    CheckpointFolder(run_dir, journal, alive=lambda: signs.append(0)).save(checkpoint(2, model=large))
    assert len(signs) >= small + 2 * len(large)  # each tensor is 1 MiB, written and then hashed


def test_a_large_file_is_brought_to_the_disk_part_by_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    path = tmp_path / "large"
    monkeypatch.setattr(durable_files, "_SYNCED_BYTES", 1000)
    monkeypatch.setattr("os.fsync", lambda _descriptor: synced.append(path.stat().st_size))
    with path.open("wb") as file:
        writer = durable_files.DurableWriter(file, alive=lambda: None)
        for _ in range(5):
            writer.write(b"x" * 500)
        writer.sync()
    assert synced == [1000, 2000, 2500]
