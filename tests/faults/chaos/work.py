"""The jobs of the chaos run: what each asks for, and what it must have computed if it succeeds."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tests import program
from tests.service import DIGITS, program_train

PACE_S = 0.05
"""Seconds that a step of a program takes: a job takes about one, and saves several times."""
DIGITS_EVERY = 100
"""One job of so many trains digits by DistributedDataParallel, on two ranks."""
MAX_RETRIES = 100
"""The most that a job may have: none of them should run out of it, whatever strikes."""


@dataclass(frozen=True)
class Work:
    """One job, as it is submitted."""

    key: str
    """Its Idempotency-Key."""
    spec: dict[str, Any]
    steps: int | None
    """How many steps its program takes; None for the digits, of which only another run of them can tell the result."""

    @property
    def series(self) -> Sequence[tuple[str, int, float | None]]:
        """What its program reports, as `tests.laws.training_series` has it."""
        return [("train/loss", step, weight) for step, weight in enumerate(self._weights(), start=1)]

    @property
    def state(self) -> object:
        """What is in its program's last checkpoint."""
        *_, last = self._weights()
        return [self.steps, last]

    def _weights(self) -> Iterator[float]:
        assert self.steps is not None
        weight = program.FIRST
        for _ in range(self.steps):
            weight = program.after(weight)
            yield weight


def digits() -> dict[str, Any]:
    """What the jobs that train digits train."""
    return DIGITS | {"epochs": 1}


def program_of(steps: int) -> dict[str, Any]:
    """What the other jobs train: a program of so many steps."""
    return program_train(steps=steps, pace_s=PACE_S)


def make_work(count: int, draws: random.Random) -> list[Work]:
    """Draw so many jobs: most on one device, some on two, a few of digits, every other of these on two hosts."""
    return [
        _digits(number) if number % DIGITS_EVERY == DIGITS_EVERY - 1 else _program(number, draws)
        for number in range(count)
    ]


def _digits(number: int) -> Work:
    is_on_two_hosts = number // DIGITS_EVERY % 2 == 0
    where = {"device": {"count": 1}, "nodes": 2} if is_on_two_hosts else {"device": {"count": 2}}
    return _work(number, {"train": digits(), **where}, steps=None)


def _program(number: int, draws: random.Random) -> Work:
    steps = draws.randint(12, 30)
    train = program_of(steps)
    device = {"count": 1 if draws.random() < 0.9 else 2}
    return _work(number, {"train": train, "device": device, "priority": draws.randint(0, 100)}, steps=steps)


def _work(number: int, spec: dict[str, Any], *, steps: int | None) -> Work:
    named = {"name": f"chaos-{number}", "max_retries": MAX_RETRIES}
    return Work(f"chaos-{number}", spec | named, steps)
