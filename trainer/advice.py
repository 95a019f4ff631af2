"""Advice: how long a train.yaml takes on one, two and four ranks, and what holds it up, from a trial of a few steps."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median

from trainer.config import SCRIPT, TrainConfig
from trainer.errors import ConfigError
from trainer.journal import Metrics, Started, read_records
from trainer.local_run import run_in
from trainer.micro_batches import accumulated_batches
from trainer.outcome import Outcome
from trainer.probing import Timings, probe
from trainer.recipes.registry import recipe_type
from trainer.run_dir import RunConfig, RunDir
from trainer.train_file import TrainFile
from trainer.trials import complete, named_devices, placed, refuse_inside_run, temporary_folder

_WARM_UP_STEPS = 5
"""Steps of a trial that are not counted: loaders start, memory is laid out, DDP sorts its buckets."""


@dataclass(frozen=True)
class Pace:
    """How fast so many ranks train."""

    world_size: int
    samples_per_s: float | None = None
    """Training samples a second: the median of the steps that were measured, or as predicted; None where nothing can be
    said."""
    range_per_s: tuple[float, float] | None = None
    """The slowest and the fastest of those steps; None where it is predicted."""
    note: str = ""
    """Why nothing can be said, or what the prediction leaves out."""


@dataclass(frozen=True)
class Advice:
    """What a trial has found."""

    config: TrainConfig
    """The training, with the batch it takes where that was left to us."""
    devices: tuple[str, ...]
    steps_per_epoch: int
    accumulate: int
    """Batches of an optimizer step."""
    timings: Timings
    paces: tuple[Pace, ...]

    @property
    def samples_per_step(self) -> int:
        """The effective batch: what an optimizer step takes, as far as the training set has as many."""
        return min(self.config.batch * self.accumulate, self.timings.samples)

    @property
    def is_input_bound(self) -> bool:
        """Whether one rank's loader takes longer for a step's batches than the step takes on them."""
        return self.timings.load_s > self.timings.compute_s

    def step_s(self, samples_per_s: float) -> float:
        """Seconds of an optimizer step at this pace."""
        return self.samples_per_step / samples_per_s

    def epoch_s(self, samples_per_s: float) -> float:
        """Seconds that an epoch's training takes at this pace, validation left out."""
        return self.timings.samples / samples_per_s


def advise(
    file: TrainFile, world_sizes: Sequence[int], *, steps: int, run: Callable[[RunDir], Outcome] = run_in
) -> Advice:
    """Train `steps` steps of a train.yaml on each number of ranks that there are devices for, and predict the others.

    Then the input alone and the step alone are measured, on one rank in this process. Nothing is kept.

    Raises:
        ConfigError: for what cannot be run.
        RunFailedError: a trial failed; its `cause` says why.
        RunInterruptedError: SIGINT, SIGTERM or SIGHUP ended it.
    """
    refuse_inside_run("advise")
    train, devices = _trial_config(file.train), named_devices(file)
    with temporary_folder("advise") as folder:
        alone = _trial(RunDir(folder / "run-1"), train, devices, 1, steps=steps, run=run)
        train = train.model_copy(update={"batch": alone.batch})
        paces = [alone.pace]
        for world_size in world_sizes:
            if world_size == 1:
                continue
            if reason := _why_unmeasured(train, devices, world_size):
                paces.append(Pace(world_size, note=reason))
            else:
                paces.append(_trial(RunDir(folder / "run"), train, devices, world_size, steps=steps, run=run).pace)
        one_rank = placed(train, devices, 1).run_config()
        timings = probe(one_rank, RunDir(folder))
        shares = {
            pace.world_size: probe(with_share(one_rank, pace.world_size), RunDir(folder))
            for pace in paces
            if pace.samples_per_s is None and train.batch % pace.world_size == 0
        }
    return Advice(
        config=file.train.model_copy(update={"batch": alone.batch}),
        devices=devices,
        steps_per_epoch=alone.steps_per_epoch,
        accumulate=alone.accumulate,
        timings=timings,
        paces=tuple(
            predicted(pace, paces, timings, shares.get(pace.world_size), samples=alone.batch * alone.accumulate)
            for pace in paces
        ),
    )


@dataclass(frozen=True)
class _Trial:
    pace: Pace
    batch: int
    accumulate: int
    steps_per_epoch: int


def _trial_config(train: TrainConfig) -> TrainConfig:
    """Return what the trials train: the same steps, each of them told of, and nothing besides."""
    if train.recipe == SCRIPT:
        raise ConfigError(f"recipe: {SCRIPT} is a program of its own; there are no steps of it to measure")
    if train.strategy == "dp":
        raise ConfigError("strategy: dp has one rank, whatever the devices; leave strategy out to see what ddp does")
    plain = {"log_every": 1, "save_every": None, "resume": None, "patience": None, "profile": False, "strategy": "ddp"}
    return train.model_copy(update=plain)


def _why_unmeasured(train: TrainConfig, devices: Sequence[str], world_size: int) -> str:
    """Return why there is no trial on so many ranks; empty where there is one."""
    if train.batch % world_size:
        return f"batch {train.batch} does not divide among {world_size} ranks"
    if world_size > 1 and not recipe_type(train.recipe).spawnable:
        return f"recipe {train.recipe} needs torchrun for several ranks"
    if devices[0] != "cpu" and world_size > len(devices):
        return f"device names {len(devices)} of {world_size}"
    return ""


def _trial(
    run_dir: RunDir,
    train: TrainConfig,
    devices: Sequence[str],
    world_size: int,
    *,
    steps: int,
    run: Callable[[RunDir], Outcome],
) -> _Trial:
    config = placed(train, devices, world_size).run_config().model_copy(update={"max_steps": steps})
    run_dir.create(config)
    complete(run_dir, config, run)
    records = list(read_records(run_dir.journal))
    shutil.rmtree(run_dir.path)
    started = next(record for record in records if isinstance(record, Started))
    assert started.steps_per_epoch is not None, "no script is tried"
    batch, accumulate = started.batch or train.batch, started.accumulate
    rates = [
        rate for record in records if isinstance(record, Metrics) and (rate := record.values.get("train/images_per_s"))
    ]
    counted = rates[min(_WARM_UP_STEPS, len(rates) // 2) :]
    pace = Pace(world_size, median(counted), (min(counted), max(counted)))
    return _Trial(pace, batch, accumulate, started.steps_per_epoch)


def with_share(config: RunConfig, world_size: int) -> RunConfig:
    """Return a run on one rank that computes what each of so many ranks would."""
    batch = config.train.batch // world_size
    # As many batches for a step as all take together: nbs / batch rounds otherwise once both are divided.
    nbs = accumulated_batches(config.train) * batch if config.train.nbs is not None else None
    share = {"batch": batch, "nbs": nbs}
    return config.model_copy(update={"train": config.train.model_copy(update=share)})


def predicted(pace: Pace, paces: Sequence[Pace], alone: Timings, share: Timings | None, *, samples: int) -> Pace:
    """Return a pace that could not be measured as it follows from a rank's work on its share.

    `alone` is what one rank takes for a step's samples, `samples` of them, and `share` what it takes for its share.

    Gradients are averaged by a ring, in which each rank sends 2·(W-1)/W times their size
    (Patarasuk and Yuan, 2009): what that takes on two ranks is known only where two were measured.
    """
    if pace.samples_per_s is not None or share is None:
        return pace
    sending_s, note = 0.0, "time for averaging gradients not counted"
    of_two = next((other.samples_per_s for other in paces if other.world_size == 2), None)
    if of_two is not None:
        # Half of what one rank takes: an estimate, since half a batch by itself was not measured.
        work_s = alone.step_s / 2
        sending_s = max(0.0, samples / of_two - work_s) * 2 * (pace.world_size - 1) / pace.world_size
        note = "with the time for averaging gradients as on two ranks"
    step_s = share.step_s + sending_s
    return replace(pace, samples_per_s=samples / step_s, note=f"{pace.note}; {note}")
