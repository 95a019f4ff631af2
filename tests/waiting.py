"""How a test waits: for a condition, with a deadline, and with a message that says what did not happen."""

import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")


def wait_until(
    condition: Callable[[], Value], *, timeout_s: float, what: str | Callable[[], str], interval_s: float = 0.05
) -> Value:
    """Call `condition` until it returns something truthy, and return that.

    `what` completes the sentence "waited N s for ..."; give a function to describe the state at the time of failure.
    An exception in `condition` fails the test at once: a condition that may not hold yet says so by its value.

    Raises:
        AssertionError: the condition did not hold within `timeout_s` seconds.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= deadline:
            description = what if isinstance(what, str) else what()
            raise AssertionError(f"waited {timeout_s:g} s for {description}; the last value seen was {value!r}")
        time.sleep(interval_s)
