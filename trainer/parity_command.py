"""The command `python -m trainer parity`: run the proof of a train.yaml, and print what it found."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trainer.config import SCRIPT
from trainer.errors import ConfigError
from trainer.interrupting import interruptible
from trainer.run_dir import EXIT_FAILED
from trainer.train_file import TrainFile
from trainer.trials import status_of

if TYPE_CHECKING:
    from trainer.parity import Difference, ParityResult

_STEPS = 20
_TOLERANCE = 1e-5


def run_parity(arguments: Sequence[str]) -> int:
    """Run the command line that follows the word `parity`; return 0 where all agree, 1 where they do not.

    Raises ConfigError or DataError for what cannot be run (exit status 2).
    """
    options = _parser().parse_args(arguments)
    return status_of(lambda: _prove(options))


def _prove(options: argparse.Namespace) -> int:
    with interruptible():  # of its own, so that nothing begins after a signal that was swallowed
        from trainer.parity import parity, reasons  # imports torch

    file = TrainFile.read(options.file, device=options.device)
    if file.train.recipe == SCRIPT:
        raise ConfigError("recipe: what a program trains on each number of ranks is its own, and cannot be compared")
    world_sizes: tuple[int, ...] = options.world_sizes
    double = not options.float32
    results = parity(file, world_sizes, steps=options.steps, tolerance=options.tolerance, double=double)
    sys.stdout.write(_report(results, reasons(file, double=double), options))
    sys.stdout.flush()
    return 0 if all(result.agrees for result in results) else EXIT_FAILED


def _report(results: "Sequence[ParityResult]", cannot: Sequence[str], options: argparse.Namespace) -> str:
    first, *others = results
    agree = all(result.agrees for result in results)
    sizes = ", ".join(str(result.world_size) for result in results)
    how = "float32" if options.float32 else "float64"
    lines = [
        f"{_ranks(first.world_size)}: {_steps(first, options.steps)}, in {how}; weights moved by up to "
        f"{first.moved.largest:.1e}. Compared with it:"
    ]
    for result in others:
        lines += _lines(result, first, options.tolerance)
    lines.append(f"{'The same' if agree else 'Not the same'} to {options.tolerance:g} on {sizes} ranks.")
    if cannot:
        lines.append("What could still make them differ:" if agree else "Likely, because of:")
        lines += [f"- {reason}" for reason in cannot]
    elif not agree:
        lines.append("Nothing in this configuration is known to make them differ: a defect, of the model or of ours.")
    return "\n".join(lines) + "\n"


def _steps(result: "ParityResult", asked: int) -> str:
    if result.steps < asked:
        return f"{result.steps} steps, which is all that it trains"
    if result.steps < result.steps_per_epoch:
        return f"{result.steps} steps of an epoch's {result.steps_per_epoch} (its last batch is not among them)"
    return f"{result.steps} steps"


def _lines(result: "ParityResult", first: "ParityResult", tolerance: float) -> list[str]:
    lines = [
        f"{_ranks(result.world_size)}: {'the same' if result.agrees else 'NOT the same'}",
        f"  weights and buffers at most {_apart(result.weights, tolerance)}",
        f"  losses at most {_apart(result.losses, tolerance)}",
    ]
    if result.steps != first.steps:
        lines.append(f"  {result.steps} steps, not {first.steps}")
    elif result.losses_part_at is not None:
        lines.append(f"  losses more than {tolerance:g} apart from step {result.losses_part_at} on")
    return lines


def _ranks(world_size: int) -> str:
    return f"{world_size} ranks" if world_size > 1 else "1 rank"


def _apart(difference: "Difference", tolerance: float) -> str:
    text = f"{difference.largest:.1e} apart{_at(difference.where)}"
    if difference.largest <= tolerance or difference.relative == difference.largest:
        return text
    return f"{text}, {difference.relative:.1e} relative to its size{_at(difference.relative_where)}"


def _at(where: str) -> str:
    return f" ({where})" if where else ""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m trainer parity",
        description="Prove that a train.yaml trains the same weights on any number of ranks.",
    )
    parser.add_argument("file", type=Path, help="the train.yaml")
    parser.add_argument(
        "--world-sizes",
        type=_integers,
        required=True,
        metavar="N,N,…",
        help="numbers of ranks; the first is compared with",
    )
    parser.add_argument("--steps", type=int, default=_STEPS, metavar="K", help="optimizer steps (default: %(default)s)")
    parser.add_argument(
        "--tolerance",
        type=_tolerance,
        default=_TOLERANCE,
        metavar="T",
        help="largest difference that passes: absolute up to a magnitude of 1, relative beyond (default: %(default)s)",
    )
    parser.add_argument(
        "--float32",
        action="store_true",
        help="compute as the training itself does, rounding (and amp) included, instead of in float64",
    )
    parser.add_argument("--device", help='where, instead of what the file says: "cpu", or a list such as "0,1"')
    return parser


def _integers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(token) for token in text.split(","))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of numbers such as 1,2,4") from error


def _tolerance(text: str) -> float:
    try:
        value = float(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number such as 1e-5") from error
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not from 0 to 1")
    return value
