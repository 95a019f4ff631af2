"""Interrupting: the signals that stop a run, as an exception, for what is done before, between and after runs."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from trainer.errors import RunInterruptedError


@contextmanager
def interruptible() -> Iterator[Callable[[], None]]:
    """Raise RunInterruptedError in the block on SIGINT, SIGTERM or SIGHUP (unless it is ignored).

    Yields a function after which they go unheard until the block ends: for cleaning up. A run that is launched in the
    block handles them by itself.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None  # Python allows handlers in the main thread only; there the caller decides about signals
        return

    def stop(number: int, _frame: FrameType | None) -> NoReturn:
        raise RunInterruptedError(f"stopped by {signal.Signals(number).name}")

    def ignore() -> None:
        for number in previous:
            signal.signal(number, signal.SIG_IGN)

    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # under nohup, a closed terminal is not to end it
        numbers.append(signal.SIGHUP)
    previous = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield ignore
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
