"""`python -m benchmarks`: run them, telling each turn, and print a table."""

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

from rich.console import Console
from rich.table import Table

from benchmarks.report import Line
from trainer.parent_death import die_with_parent
from trainer.terminal import say
from trainer.trials import status_of

BENCHMARKS = {
    "service": "how long a job waits to be claimed and for its first step, beside torchrun; memory; 3 minutes",
    "journal": "what a training step takes with the journal and without; 1 minute",
    "planning": "what a plan of 10,000 waiting jobs takes, beside a loop that serves who came first; 1 minute",
    "reading": "how fast metrics are stored beside COPY, charts and long lists of jobs on PostgreSQL; 2 minutes",
    "dashboard": "how fast a browser shows a job of 4 series of 100,000 values and a table of 10,000 jobs; 2 minutes",
    "images": "images per second beside torchvision's ImageFolder and DataLoader; 1 minute",
}
"""What each module of that name measures, and what it usually takes on two cores."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the named benchmarks, or all of them, and return the exit status.

    What is measured is told on standard error turn by turn, for those who do not wait for the end.
    """
    names: list[str] = _parser().parse_args(arguments).names or list(BENCHMARKS)
    return status_of(lambda: _measure(names))


def _measure(names: Sequence[str]) -> int:
    from trainer.bench.machine import machine  # imports torch, as the benchmarks do

    table = Table("measured", "figure", "peer in the same run", "ratio", title=machine())
    for name in names:
        measure: Callable[[Callable[[str], None]], list[Line]] = import_module(f"benchmarks.{name}").measure
        for line in measure(say):
            table.add_row(line.what, line.figure, line.peer, f"{line.ratio:.2f}" if line.ratio else "")
    Console(width=140).print(table)
    return 0


def _parser() -> argparse.ArgumentParser:
    listed = "\n".join(f"  {name:9} {what}" for name, what in BENCHMARKS.items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure RankZero beside what it is to be compared with, on this machine.",
        epilog=f"benchmarks, each with what it usually takes on two cores:\n{listed}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", type=_name, help="default: all of them")
    return parser


def _name(text: str) -> str:
    if text not in BENCHMARKS:
        raise argparse.ArgumentTypeError(f"there is no benchmark {text!r}; there are {', '.join(BENCHMARKS)}")
    return text


if __name__ == "__main__":
    die_with_parent()
    sys.exit(main())
