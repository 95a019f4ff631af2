"""Interrupting: the signals that stop a run, and who hears them."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

from trainer.errors import RunInterruptedError


def die_of_interrupts() -> None:
    """Let a Ctrl-C end this process as it does any program, without a traceback, while nobody has begun to listen."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def raise_interrupts() -> None:
    """Have Python raise a KeyboardInterrupt on SIGINT again, where `die_of_interrupts` has put an end to that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def stop_signals(handler: Callable[[int, FrameType | None], Any]) -> Iterator[tuple[signal.Signals, ...]]:
    """Have `handler` called on SIGINT, SIGTERM and SIGHUP (unless it is ignored) instead of dying of them.

    Yields those that it is called on: none outside the main thread, the only one that Python lets set handlers; there
    the caller decides about signals. The handlers that were there before come back afterwards.
    """
    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # under nohup, a closed terminal is not to end the run
        numbers.append(signal.SIGHUP)
    if threading.current_thread() is not threading.main_thread():
        numbers.clear()
    previous = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield tuple(numbers)
    finally:
        for number, former in previous.items():
            signal.signal(number, former)


@contextmanager
def interruptible() -> Iterator[Callable[[], None]]:
    """End the block with RunInterruptedError on SIGINT, SIGTERM or SIGHUP (unless it is ignored).

    At once where Python code of the block runs; at its end where an import, say, has swallowed what the handler raised.

    Yields a function after which they go unheard until the block ends: for cleaning up. A run that is launched in the
    block handles them by itself.
    """
    heard: list[signal.Signals] = []

    def stop(number: int, _frame: FrameType | None) -> NoReturn:
        heard.append(signal.Signals(number))
        raise _Stop

    with stop_signals(stop) as numbers:

        def ignore() -> None:
            for number in numbers:
                signal.signal(number, signal.SIG_IGN)

        try:
            yield ignore
        except (Exception, _Stop) as error:
            if heard:  # whatever became of it on its way, such as an import that failed
                raise RunInterruptedError(f"stopped by {heard[0].name}") from error
            raise
        if heard:
            raise RunInterruptedError(f"stopped by {heard[0].name}")


class _Stop(BaseException):
    """Raised by the handler: no Exception, for code in the block may pass over those."""
