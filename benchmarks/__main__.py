"""`python -m benchmarks`: run them all and print a table."""

import sys

from rich.console import Console
from rich.table import Table

from benchmarks import images, journal, service
from trainer.bench.machine import machine

BENCHMARKS = {"service": service.measure, "journal": journal.measure, "images": images.measure}


def main(names: list[str]) -> None:
    """Run the named benchmarks, or all of them. What is under way is told on standard error."""
    unknown = sorted(set(names) - set(BENCHMARKS))
    if unknown:
        sys.exit(f"no benchmark {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    progress = Console(stderr=True)
    table = Table("measured", "figure", "peer in the same run", "ratio", title=machine())
    for name in names or BENCHMARKS:
        for line in BENCHMARKS[name](lambda what: progress.print(f"[dim]{what} …")):
            table.add_row(line.what, line.figure, line.peer, f"{line.ratio:.2f}" if line.ratio else "")
    Console(width=140).print(table)


if __name__ == "__main__":
    main(sys.argv[1:])
