"""Checkpoints: what a run continues from, written so that a crash at any instant leaves the one before."""

import os
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

import torch
from pydantic import ConfigDict, NonNegativeInt, TypeAdapter, ValidationError
from torch import nn, optim

from trainer.durable_files import DurableWriter, fsync_path, sha256_of
from trainer.errors import CheckpointError, NonFiniteLossError
from trainer.journal import CheckpointSaved, finite_values, read_backwards, read_records
from trainer.reporting import Journal, warn
from trainer.run_dir import RunDir
from trainer.validation import describe

FORMAT = 4
"""Changes with the fields of a checkpoint. 2 and 3 lack those of `amp: fp16` and of `patience`; 2 lacks `unaveraged` as
well, and has one number for a metric."""


@dataclass(frozen=True)
class Checkpoint:
    """All that the rest of a run depends on. No generator state: seeds follow from epoch and step (trainer.seeds)."""

    model: dict[str, torch.Tensor]
    """Weights and buffers by name, of the bare model: no `module.` prefix. Their moving average, with `ema`."""
    unaveraged: dict[str, torch.Tensor] | None
    """With `ema`, the weights and buffers that training goes on from."""
    optimizer: dict[str, Any]
    epoch: NonNegativeInt
    """Epochs completed."""
    step_in_epoch: NonNegativeInt
    """Steps taken in the epoch after those; all of them where only its evaluation is left to do."""
    step: NonNegativeInt
    """Optimizer steps taken in all."""
    steps_per_epoch: NonNegativeInt
    seed: int
    world_size: int
    config: dict[str, Any]
    """The TrainConfig, as JSON."""
    class_names: tuple[str, ...]
    samples: str
    """Which samples the run trains on and which it validates on, as TaskData has it."""
    values: dict[str, float]
    """Validation metrics at this point; empty in the middle of an epoch."""
    metric: tuple[float, ...] | None
    """What `best` goes by, the higher the better: the recipe's metric, then what decides among equal ones."""
    best_file: str | None = None
    """Name of the best checkpoint up to and including this one, in the same folder."""
    best_metric: tuple[float, ...] | None = None
    stale_epochs: NonNegativeInt = 0
    """Epochs in a row, up to this point, that have not bettered the recipe's metric."""
    scaler: dict[str, Any] | None = None
    """With `amp: fp16`, the state of the loss's scale."""
    skipped_steps: NonNegativeInt = 0
    """Steps, of those taken, that moved no weight because their gradients overflowed."""
    format: int = FORMAT

    __pydantic_config__ = ConfigDict(arbitrary_types_allowed=True)


_SCHEMA = TypeAdapter(Checkpoint)


def load_checkpoint(path: Path, *, verify_digest: bool = False) -> Checkpoint:
    """Read a checkpoint onto the CPU, running no code from it. Raises CheckpointError naming the file.

    `verify_digest` also compares its sha256 with what the journal beside it says, where there is one.
    """
    if not path.is_file():
        raise CheckpointError(f"{path}: there is no such checkpoint")
    if verify_digest and (recorded := _recorded_digest(path)) not in (None, sha256_of(path)):
        raise CheckpointError(
            f"{path}: the checkpoint is damaged (its sha256 is not {recorded}, which the journal names)"
        )
    try:
        payload = torch.load(path, map_location="cpu", weights_only=True)
    except MemoryError:
        raise
    except Exception as error:
        reason = str(error).strip().splitlines()
        raise CheckpointError(
            f"{path}: not a readable checkpoint ({type(error).__name__}: {reason[0] if reason else ''})"
        ) from error
    if not isinstance(payload, dict) or payload.get("format") not in (2, 3, FORMAT):
        raise CheckpointError(f"{path}: not a checkpoint of this program, or of another release of it")
    payload = _in_this_format(payload)
    missing = {entry.name for entry in fields(Checkpoint)} ^ payload.keys()
    if missing:
        raise CheckpointError(f"{path}: the checkpoint lacks or has too much of {', '.join(sorted(missing))}")
    try:
        return _SCHEMA.validate_python(payload)
    except ValidationError as error:
        raise CheckpointError(f"{path}: not a checkpoint that a run has written: {describe(error)}") from error


def _in_this_format(payload: dict[str, Any]) -> dict[str, Any]:
    """Return what a checkpoint of any format that is read would be in this one."""
    if payload["format"] == 2:
        payload |= {name: payload[name] and (payload[name],) for name in ("metric", "best_metric") if name in payload}
        payload |= {"unaveraged": None}
    if payload["format"] < FORMAT:
        payload |= {"stale_epochs": 0, "scaler": None, "skipped_steps": 0, "format": FORMAT}
    return payload


def restore_optimizer(path: Path, checkpoint: Checkpoint, optimizer: optim.Optimizer) -> None:
    """Put a checkpoint's state into the optimizer. Raises CheckpointError where it does not fit.

    The optimizer keeps the options it was built with: weight decay and momentum are what the config says now, not what
    an earlier one said.
    """
    options = [{name: value for name, value in group.items() if name != "params"} for group in optimizer.param_groups]
    try:
        optimizer.load_state_dict(checkpoint.optimizer)
    except (ValueError, KeyError) as error:
        raise CheckpointError(f"{path}: its optimizer state does not fit: {error}") from error
    for group, own in zip(optimizer.param_groups, options, strict=True):
        group.update(own)


def restore_weights(path: Path, weights: Mapping[str, torch.Tensor], model: nn.Module) -> None:
    """Put a checkpoint's weights into the model. Raises CheckpointError naming the first misfit."""
    own = model.state_dict()
    for name in (*own, *(name for name in weights if name not in own)):
        ours, theirs = own.get(name), weights.get(name)
        if ours is None or theirs is None or ours.shape != theirs.shape:
            raise CheckpointError(f"{path}: of another model: {name} is {_shape(theirs)} there and {_shape(ours)} here")
    model.load_state_dict(weights)


class CheckpointFolder:
    """The checkpoints of one run directory: rank 0 writes them, and keeps the last two and the best."""

    def __init__(
        self,
        run_dir: RunDir,
        journal: Journal,
        *,
        never_finite: Collection[str] = (),
        alive: Callable[[], None] = lambda: None,
    ) -> None:
        """`never_finite`: names of the model's buffers that are not finite by design, such as an attention mask.
        `alive` is called again and again while a file is written."""
        self._folder, self._journal, self._never_finite = run_dir.checkpoints, journal, never_finite
        self._alive = alive
        self._announced, removed = _announced(run_dir)
        self._best: tuple[str, tuple[float, ...]] | None = None
        self.last_step: int | None = None
        """Step of the newest checkpoint that was written or continued from."""
        self._remove_leftovers(removed)

    @property
    def is_empty(self) -> bool:
        """Whether the run directory has no checkpoint yet."""
        return not self._announced

    @property
    def best_path(self) -> str:
        """The best checkpoint, or the last where none was the best of anything, relative to the run directory."""
        return f"{self._folder.name}/{self._best[0] if self._best else self._announced[-1]}"

    def save(self, checkpoint: Checkpoint) -> None:
        """Commit a checkpoint, then tell the journal, then delete all but the last two and the best.

        Raises NonFiniteLossError rather than write weights that are not finite, and OSError where the disk is full; in
        both cases nothing earlier is touched.
        """
        _refuse_non_finite(checkpoint, besides=self._never_finite)
        name = self._free_name(checkpoint.step)
        is_best = checkpoint.metric is not None and (self._best is None or checkpoint.metric > self._best[1])
        best = (name, checkpoint.metric) if is_best and checkpoint.metric is not None else self._best
        payload = {entry.name: getattr(checkpoint, entry.name) for entry in fields(checkpoint)}
        payload |= {"best_file": best[0] if best else None, "best_metric": best[1] if best else None}
        written = partial(_write, payload=payload, alive=self._alive)
        with _committed(self._folder / name, written, self._alive) as (digest, size):
            self._best = best
            self._announce(name, checkpoint, digest=digest, size_bytes=size, best=is_best)

    def continue_from(self, path: Path, checkpoint: Checkpoint) -> None:
        """Take over the best so far of the run that `path` belongs to, as a file of this run directory.

        Where the best is out of reach (only `path` itself was brought here), the best so far is `path`, if it was
        validated, and else the next checkpoint that is; a warning says so.
        """
        self.last_step = checkpoint.step
        if checkpoint.best_file is None or checkpoint.best_metric is None:
            return
        if path.resolve().parent == self._folder.resolve():
            self._best = (checkpoint.best_file, checkpoint.best_metric)
            return
        source = path.with_name(checkpoint.best_file)
        if source.name == path.name:
            self._adopt(path, checkpoint, checkpoint.best_metric)
        elif source.is_file():
            self._adopt(source, load_checkpoint(source, verify_digest=True), checkpoint.best_metric)
        else:
            warn(
                self._journal, f"the best checkpoint so far, {source}, is gone: the best is sought anew from {path} on"
            )
            if checkpoint.metric is not None:
                self._adopt(path, checkpoint, checkpoint.metric)

    def _adopt(self, source: Path, checkpoint: Checkpoint, metric: tuple[float, ...]) -> None:
        name = self._free_name(checkpoint.step)
        linked = partial(_link_or_copy, source)
        with _committed(self._folder / name, linked, self._alive) as (digest, size):
            self._best = (name, metric)
            self._announce(name, checkpoint, digest=digest, size_bytes=size, best=True)

    def _announce(self, name: str, checkpoint: Checkpoint, *, digest: str, size_bytes: int, best: bool) -> None:
        # The one before stays for once more: what a service knows may be that one still, should all be killed here.
        kept = {name, *self._announced[-1:], self._best[0] if self._best else name}
        removed = [earlier for earlier in self._announced if earlier not in kept]
        self._journal.append(
            CheckpointSaved,
            durable=True,
            step=checkpoint.step,
            epoch=checkpoint.epoch,
            path=f"{self._folder.name}/{name}",
            sha256=digest,
            size_bytes=size_bytes,
            best=best,
            values=finite_values(checkpoint.values)[0],
            removed=tuple(f"{self._folder.name}/{earlier}" for earlier in removed),
        )
        self._announced = [earlier for earlier in self._announced if earlier in kept] + [name]
        self.last_step = checkpoint.step
        for earlier in removed:
            (self._folder / earlier).unlink(missing_ok=True)

    def _free_name(self, step: int) -> str:
        """A name that never was another file's: what the journal once said of a path stays true of it."""
        name, copy = f"step-{step:08}.pt", 1
        while (self._folder / name).exists():
            copy += 1
            name = f"step-{step:08}-{copy}.pt"
        return name

    def _remove_leftovers(self, removed: set[str]) -> None:
        """Delete what a crash left: files taken back, half-written ones, and whole ones that nobody was told of.

        Anything else in the folder is the user's, whatever its name.
        """
        for name in removed:
            (self._folder / name).unlink(missing_ok=True)
        for temporary in self._folder.glob(".step-*.pt.tmp"):
            path = temporary.with_name(temporary.name.removeprefix(".").removesuffix(".tmp"))
            if path.name not in self._announced and path.exists() and path.samefile(temporary):
                path.unlink()
            temporary.unlink()


def _announced(run_dir: RunDir) -> tuple[list[str], set[str]]:
    """Return the names of the checkpoints that the journal says are there, oldest first, and of those taken back."""
    names: list[str] = []
    removed: set[str] = set()
    for record in read_records(run_dir.journal):
        if isinstance(record, CheckpointSaved):
            name = Path(record.path).name
            removed = (removed | {Path(path).name for path in record.removed}) - {name}
            names = [earlier for earlier in names if earlier not in removed] + [name]
    return names, removed


@contextmanager
def _committed(path: Path, write: Callable[[Path], None], alive: Callable[[], None]) -> Iterator[tuple[str, int]]:
    """Let `write` make a file, and name it `path` once it is on disk. Yields its sha256 and its size in bytes.

    Its temporary name stays until the block, which tells the journal of it, is done: so a start after a crash knows a
    file that nobody was told of from one that a user has put there.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        write(temporary)
        digest, size = sha256_of(temporary, alive=alive), temporary.stat().st_size
        _name(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)  # half a file on a full disk is in the way of the next try
        raise
    fsync_path(path.parent)
    yield digest, size
    temporary.unlink(missing_ok=True)


def _name(temporary: Path, path: Path) -> None:
    try:
        os.link(temporary, path)
    except OSError:  # a file system without links; should we be killed before the journal is told, the file stays
        temporary.replace(path)


def _write(path: Path, payload: Mapping[str, Any], alive: Callable[[], None]) -> None:
    with path.open("wb") as file:
        writer = DurableWriter(file, alive=alive)
        torch.save(payload, writer)  # type: ignore[arg-type]  # it takes whatever has `write` and `flush`
        writer.sync()


def _link_or_copy(source: Path, path: Path) -> None:
    """Checkpoints never change, so a second name for the same bytes is as good as a copy, and free."""
    try:
        os.link(source, path)
    except OSError:  # another file system, or one without links
        shutil.copyfile(source, path)
        with path.open("rb") as file:
            os.fsync(file.fileno())


def _recorded_digest(path: Path) -> str | None:
    run_dir = RunDir(path.resolve().parent.parent)
    if run_dir.checkpoints != path.resolve().parent:
        return None
    newest_first = (record for record in read_backwards(run_dir.journal) if isinstance(record, CheckpointSaved))
    return next((record.sha256 for record in newest_first if Path(record.path).name == path.name), None)


def non_finite(model: nn.Module) -> tuple[str, ...]:
    """Return the names in a model's state of the tensors that are not finite."""
    return tuple(name for name, value in model.state_dict().items() if not value.isfinite().all())


def _refuse_non_finite(checkpoint: Checkpoint, *, besides: Collection[str]) -> None:
    """Raise NonFiniteLossError for weights that nothing can continue from; a finite loss may have ruined them."""
    weights = checkpoint.model if checkpoint.unaveraged is None else checkpoint.unaveraged
    tensors = {name: tensor for name, tensor in weights.items() if tensor.is_floating_point() and name not in besides}
    finite = torch.stack([tensor.isfinite().all() for tensor in tensors.values()])  # one wait for the device, not many
    if not finite.all():
        name = next(name for name, is_finite in zip(tensors, finite.tolist(), strict=True) if not is_finite)
        raise NonFiniteLossError(
            f"the weights are not finite after step {checkpoint.step} on rank 0 (first: {name}); try a smaller lr "
            "(earlier checkpoints are intact)"
        )


def _shape(tensor: torch.Tensor | None) -> str:
    return "absent" if tensor is None else f"of shape {tuple(tensor.shape)}"
