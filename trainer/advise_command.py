"""The command `python -m trainer advise`: what a trial of a train.yaml says about its speed and its learning rate."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trainer.interrupting import interruptible
from trainer.learning_rates import hints
from trainer.train_file import TrainFile
from trainer.trials import status_of

if TYPE_CHECKING:
    from trainer.advice import Advice, Pace

_STEPS = 20
_WORLD_SIZES = (1, 2, 4)


def run_advise(arguments: Sequence[str]) -> int:
    """Run the command line that follows the word `advise`; return 0 where the trial has run.

    Raises ConfigError or DataError for what cannot be run (exit status 2).
    """
    options = _parser().parse_args(arguments)
    return status_of(lambda: _advise(options))


def _advise(options: argparse.Namespace) -> int:
    with interruptible():  # of its own, so that nothing begins after a signal that was swallowed
        from trainer.advice import advise  # imports torch

    advice = advise(TrainFile.read(options.file, device=options.device), _WORLD_SIZES, steps=options.steps)
    sys.stdout.write("\n".join(report(advice, steps=options.steps)) + "\n")
    sys.stdout.flush()
    return 0


def report(advice: "Advice", *, steps: int) -> list[str]:
    """Return the lines that are printed of a trial of so many steps."""
    config, timings = advice.config, advice.timings
    parts = f"{advice.accumulate} batches of {config.batch}" if advice.accumulate > 1 else "one batch"
    return [
        f"{config.model} on {config.data}: {timings.samples} samples and {advice.steps_per_epoch} steps an epoch",
        f"Effective batch: {advice.samples_per_step} samples in an optimizer step ({parts}), on any number of ranks.",
        "",
        f"Training, from {steps} steps on each number of ranks, the first few not counted:",
        *(_row(advice, pace) for pace in advice.paces),
        f"Validation after each epoch: about {_seconds(timings.val_s)} on one rank, and shared among several.",
        *_remarks(advice),
        "",
        f"Input: {_verdict(advice)}",
        "",
        "Learning rate:",
        *(f"- {hint}" for hint in hints(config, samples=advice.samples_per_step)),
    ]


def _row(advice: "Advice", pace: "Pace") -> str:
    ranks = f"  {pace.world_size} rank{'s' if pace.world_size > 1 else ' '}"
    if pace.samples_per_s is None:
        return f"{ranks}  not measured: {pace.note}"
    step_s, epoch_s = advice.step_s(pace.samples_per_s), advice.epoch_s(pace.samples_per_s)
    text = f"{ranks}  {_seconds(step_s)} a step, {_seconds(epoch_s)} an epoch"
    if pace.range_per_s is None:
        return f"{text}; predicted, not measured ({pace.note})"
    slowest, fastest = map(advice.step_s, pace.range_per_s)
    return f"{text}; measured (steps from {_seconds(fastest)} to {_seconds(slowest)})"


def _remarks(advice: "Advice") -> list[str]:
    """What makes the figures less than they seem."""
    found = []
    ranges = [pace.range_per_s for pace in advice.paces if pace.range_per_s is not None]
    if any(fastest > 2 * slowest for slowest, fastest in ranges):
        found.append("The steps differ by more than a factor of two: take the figures for rough.")
    cores = os.cpu_count() or 1
    if advice.devices[0] == "cpu" and any(pace.range_per_s and pace.world_size > cores for pace in advice.paces):
        found.append(f"There are more ranks than the {cores} cores of this host: more ranks are not faster here.")
    return found


def _verdict(advice: "Advice") -> str:
    timings, workers = advice.timings, advice.config.num_workers
    by = f"{workers} loader process{'es' if workers > 1 else ''}" if workers else "the rank itself (num_workers: 0)"
    take = "take" if workers > 1 else "takes"
    load, step = _seconds(timings.load_s), _seconds(timings.compute_s)
    figures = f"{by} {take} {load} for the samples of a step, and the step alone {step}."
    if not advice.is_input_bound and workers:
        return f"not the limit; {figures}"
    if not advice.is_input_bound:
        return f"it comes on top of each step; {figures} With num_workers of 1 or more, the two go on at the same time."
    return (
        f"the training waits for it (input-bound); {figures} More num_workers help as far as there are cores "
        f"({os.cpu_count()} here), and so do a smaller image_size, less augmentation, and a cache_gb that the set fits."
    )


def _seconds(value_s: float) -> str:
    if value_s >= 120:
        return f"{value_s / 60:.1f} min"
    return f"{value_s:.3g} s" if value_s >= 1 else f"{1000 * value_s:.3g} ms"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m trainer advise",
        description="Try a few steps of a train.yaml, and say how long it takes and what to change.",
    )
    parser.add_argument("file", type=Path, help="the train.yaml")
    parser.add_argument("--steps", type=_steps, default=_STEPS, metavar="K", help="steps to try (default: %(default)s)")
    parser.add_argument("--device", help='where, instead of what the file says: "cpu", or a list such as "0,1"')
    return parser


def _steps(text: str) -> int:
    if not text.isdecimal() or int(text) < 2:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of 2 or more")
    return int(text)
