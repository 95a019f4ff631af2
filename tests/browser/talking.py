"""A job that says and measures what a test tells it to, when it tells it: `python talking.py FOLDER` as its program.

In the folder lies one file, to which the test adds a line for each thing to do.
"""

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankzero import reporting

if TYPE_CHECKING:
    from rankzero.client import Client

ORDERS = "orders"
LOOKS_EVERY_S = 0.02


class Talk:
    """The job, as the test sees it."""

    def __init__(self, client: "Client", folder: Path, **job: Any) -> None:
        """Submit it; it has one device unless the job says otherwise, and goes on until it is told to end."""
        self._orders = folder / ORDERS
        self._orders.touch()
        train = {"recipe": "script", "options": {"script": __file__, "args": [str(folder)]}}
        self.id = client.submit(**{"device": {"count": 1}, "train": train, **job}).id
        self.name = job.get("name")

    def say(self, *lines: str) -> None:
        """Have it print lines."""
        self._order([{"say": line} for line in lines])

    def measure(self, step: int, **values: float) -> None:
        """Have it report values; one that is not finite is reported as what it is."""
        self._order([{"step": step, "values": values}])

    def fail(self, message: str) -> None:
        """Have it end by an exception."""
        self._order([{"fail": message}])

    def end(self) -> None:
        """Have it end well."""
        self._order([{"end": True}])

    def _order(self, orders: Sequence[Mapping[str, object]]) -> None:
        with self._orders.open("a") as file:
            file.write("".join(f"{json.dumps(order)}\n" for order in orders))


def main() -> None:
    """Do what is told."""
    for order in _orders(Path(sys.argv[1]) / ORDERS):
        if "say" in order:
            print(order["say"], flush=True)  # noqa: T201  (a rank's output is what its log is made of)
        elif "values" in order:
            reporting.report_values(order["values"], step=order["step"])
        elif "fail" in order:
            raise ValueError(order["fail"])
        else:
            return


def _orders(path: Path) -> Iterator[dict[str, Any]]:
    with path.open() as file:
        while True:
            # A line that is being written is read again once it is whole.
            place = file.tell()
            line = file.readline()
            if line.endswith("\n"):
                yield json.loads(line)
            else:
                file.seek(place)
                time.sleep(LOOKS_EVERY_S)


if __name__ == "__main__":
    main()
