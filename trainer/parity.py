"""Parity: the proof, on a user's own configuration, that it trains the same weights on any number of ranks."""

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import nn

from trainer.caller import Call, pack, write_call
from trainer.checkpoints import Checkpoint, load_checkpoint
from trainer.config import AUTO_BATCH, TrainConfig
from trainer.devices import MOST_PROCESSES
from trainer.double_precision import in_double
from trainer.errors import ConfigError, DeviceError
from trainer.inexactness import inexactness
from trainer.journal import Metrics, Started, read_records
from trainer.local_run import run_in
from trainer.outcome import Outcome
from trainer.process_group import ProcessGroup
from trainer.recipes.recipe import Recipe, open_data
from trainer.recipes.registry import build_recipe
from trainer.run_dir import RunConfig, RunDir
from trainer.seeds import seed_weights
from trainer.train_file import TrainFile
from trainer.trials import complete, named_devices, placed, refuse_inside_run, temporary_folder
from trainer.weights import begin_with


@dataclass(frozen=True)
class Difference:
    """How far two runs are apart, in one kind of number."""

    largest: float = 0.0
    """The largest absolute difference."""
    where: str = ""
    """The tensor, or the step, that has it."""
    relative: float = 0.0
    """The largest one as it is held against the tolerance: absolute up to a magnitude of 1, relative beyond. Variances
    that BatchNorm keeps may be large, and a float32 of 100 is itself known to 4e-6 only."""
    relative_where: str = ""


@dataclass(frozen=True)
class ParityResult:
    """One run, compared with the first."""

    world_size: int
    steps: int
    """Optimizer steps taken: as many as were asked for, or all that the training has."""
    steps_per_epoch: int
    moved: Difference
    """How far the steps have taken the parameters: agreement after steps that changed nothing would prove nothing."""
    weights: Difference
    """Over all parameters and buffers (the statistics of BatchNorm) of the final checkpoint."""
    losses: Difference
    """Over the training loss of each step, and the validation loss where an epoch ended."""
    agrees: bool
    """As many steps as the first, and neither difference beyond the tolerance."""
    losses_part_at: int | None
    """The first step with a loss beyond the tolerance. Rounding grows from step to step; another model differs at the
    first or the second."""


@dataclass(frozen=True)
class _Trained:
    """What one run has left."""

    steps: int
    steps_per_epoch: int
    weights: Mapping[str, torch.Tensor]
    losses: Mapping[tuple[int, str], float]
    """By step and name."""


def parity(
    file: TrainFile,
    world_sizes: Sequence[int],
    *,
    steps: int,
    tolerance: float,
    double: bool = True,
    run: Callable[[RunDir], Outcome] = run_in,
) -> tuple[ParityResult, ...]:
    """Train `steps` optimizer steps of a train.yaml on each number of ranks, and compare each run with the first.

    On the CPU that is so many Gloo ranks; on CUDA the first devices of the file's list. `double` computes in float64
    and without `amp`: in float32 a deep model multiplies what the order of a sum changes in the last digit by ten and
    more at every step, on one rank as on several, so that a difference after twenty says nothing about the ranks.

    `run` launches a prepared run directory. The directories are temporary and gone at the end.

    Raises:
        ConfigError: before anything is trained, for what cannot be run.
        RunFailedError: a run failed; its `cause` says why.
        RunInterruptedError: SIGINT, SIGTERM or SIGHUP ended it.
    """
    refuse_inside_run("parity")
    configs = _run_configs(file, world_sizes, steps=steps, double=double)
    _, model = _model(file.train)
    packed = pack(Call(in_double(model), ())) if double else None
    start = _start(file.train, model)
    results: list[ParityResult] = []
    first: _Trained | None = None
    with temporary_folder("parity") as folder:
        for config in configs:
            run_dir = RunDir(folder / f"run-{len(results) + 1}")
            trained = _train(run_dir, config, packed, run)
            shutil.rmtree(run_dir.path)  # a checkpoint may be large, and its weights are in memory now
            first = first or trained
            moved = _largest((name, weight, trained.weights[name]) for name, weight in start.items())
            result = _compare(first, trained, world_size=len(config.devices), moved=moved, tolerance=tolerance)
            results.append(result)
    return tuple(results)


def _run_configs(file: TrainFile, world_sizes: Sequence[int], *, steps: int, double: bool) -> tuple[RunConfig, ...]:
    """Return what is run for each number of ranks: the file's training as it is, and its loss told at every step."""
    if len(world_sizes) < 2:
        raise ConfigError("world sizes: name two or more to compare, such as 1,2,4")
    if min(world_sizes) < 1:
        raise ConfigError(f"world sizes: {min(world_sizes)} is not a number of ranks; write 1 or more")
    if steps < 1:
        raise ConfigError(f"steps: {steps} steps train nothing; write 1 or more")
    if file.train.batch == AUTO_BATCH:
        raise ConfigError("batch: -1 takes what fits, which depends on the number of ranks; write a number to compare")
    _refuse_undivided(file.train.batch, world_sizes)
    devices = named_devices(file)
    if devices[0] != "cpu" and max(world_sizes) > len(devices):
        raise DeviceError(
            f"world sizes: {max(world_sizes)} ranks need as many devices, and device {','.join(devices)!r} names "
            f'{len(devices)}; name more of them, or "cpu"'
        )
    if double and devices[0] == "mps":
        raise DeviceError('device: "mps" has no float64 to prove it in; name "cpu", or compare in float32')
    train = file.train.model_copy(update={"log_every": 1, "save_every": None} | ({"amp": None} if double else {}))
    begin = load_checkpoint(Path(train.resume)).step if train.resume else 0
    run = {"max_steps": begin + steps, "call": double}
    return tuple(placed(train, devices, world_size).run_config().model_copy(update=run) for world_size in world_sizes)


def reasons(file: TrainFile, *, double: bool) -> tuple[str, ...]:
    """Return what in this file cannot be exact, a sentence for each. Raises ConfigError or DataError."""
    recipe, model = _model(file.train)
    return inexactness(file.train, recipe=recipe, model=model, devices=named_devices(file), double=double)


def _refuse_undivided(batch: int, world_sizes: Sequence[int]) -> None:
    misfits = [world_size for world_size in world_sizes if batch % world_size]
    if misfits:
        most = min(max(world_sizes), batch, MOST_PROCESSES)
        fits = [str(world_size) for world_size in range(1, most + 1) if batch % world_size == 0]
        raise ConfigError(
            f"world sizes: batch {batch} does not divide among {misfits[0]} ranks; of 1 to {most}, it does among "
            f"{', '.join(fits)}"
        )


def _model(config: TrainConfig) -> tuple[Recipe, nn.Module]:
    """Build the model that each rank would, from the same seed or weights."""
    recipe = build_recipe(config)
    group = ProcessGroup.alone(torch.device("cpu"))
    data = open_data(recipe, group)
    with torch.random.fork_rng(devices=[]):
        seed_weights(config.seed)
        model = recipe.build_model(data)
    begin_with(model, config, group)
    return recipe, model


def _start(config: TrainConfig, model: nn.Module) -> dict[str, torch.Tensor]:
    """Return the parameters before the first step."""
    weights = load_checkpoint(Path(config.resume)).model if config.resume else model.state_dict()
    return {name: weights[name] for name, _ in model.named_parameters()}


def _train(run_dir: RunDir, config: RunConfig, call: bytes | None, run: Callable[[RunDir], Outcome]) -> _Trained:
    run_dir.create(config)
    if call is not None:
        write_call(run_dir, call)
    completed = complete(run_dir, config, run)
    saved, started = run_dir.last_checkpoint(), next(read_records(run_dir.journal))
    assert saved is not None, "a completed run has a checkpoint"
    assert isinstance(started, Started), "every journal begins with it"
    assert started.steps_per_epoch is not None, "no script is compared"
    return _Trained(
        steps=completed.step - (started.resumed_step or 0),
        steps_per_epoch=started.steps_per_epoch,
        weights=_weights(load_checkpoint(run_dir.path / saved.path)),
        losses=_losses(run_dir),
    )


def _weights(checkpoint: Checkpoint) -> dict[str, torch.Tensor]:
    """All weights and buffers; with `ema`, those that training goes on from beside their average."""
    trained = checkpoint.unaveraged or {}
    return checkpoint.model | {f"{name} (before ema)": weight for name, weight in trained.items()}


def _losses(run_dir: RunDir) -> dict[tuple[int, str], float]:
    records = (record for record in read_records(run_dir.journal) if isinstance(record, Metrics))
    return {
        (record.step, name): value
        for record in records
        for name, value in record.values.items()
        if name.endswith("/loss") and value is not None
    }


def _compare(first: _Trained, other: _Trained, *, world_size: int, moved: Difference, tolerance: float) -> ParityResult:
    weights = _largest((name, weight, other.weights[name]) for name, weight in first.weights.items())
    pairs = [
        (
            (step, name),
            torch.tensor(value, dtype=torch.float64),
            torch.tensor(other.losses[step, name], dtype=torch.float64),
        )
        for (step, name), value in first.losses.items()
        if (step, name) in other.losses
    ]
    losses = _largest((f"{name} of step {step}", one, two) for (step, name), one, two in pairs)
    apart = [step for (step, name), one, two in pairs if _largest([(name, one, two)]).relative > tolerance]
    return ParityResult(
        world_size=world_size,
        steps=other.steps,
        steps_per_epoch=other.steps_per_epoch,
        moved=moved,
        weights=weights,
        losses=losses,
        agrees=first.steps == other.steps and max(weights.relative, losses.relative) <= tolerance,
        losses_part_at=min(apart, default=None),
    )


def _largest(pairs: Iterable[tuple[str, torch.Tensor, torch.Tensor]]) -> Difference:
    found = Difference()
    for where, one, two in pairs:
        if one.numel() == 0:
            continue
        apart = (one.double() - two.double()).abs()
        if (largest := apart.max().item()) > found.largest:
            found = replace(found, largest=largest, where=where)
        if (relative := (apart / one.double().abs().clamp(min=1)).max().item()) > found.relative:
            found = replace(found, relative=relative, relative_where=where)
    return found
