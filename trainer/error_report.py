"""The error report: why a run, or one rank of it, failed, as error.json and ranks/N.error.json hold it."""

import os
import signal
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict

from trainer.durable_files import write_atomic
from trainer.errors import Cause, RunFailedError, RunInterruptedError, TrainingError


def encodable(text: str) -> str:
    """Return a text that UTF-8 can hold: lone surrogates, as in a file name that is not UTF-8, as escapes."""
    return text.encode(errors="backslashreplace").decode()


def safe_text(value: object) -> str:
    """Return what a value, such as an exception, says of itself, whatever comes of asking it."""
    try:
        return encodable(str(value))
    except Exception as error:  # noqa: BLE001  (its code is the user's)
        return f"<no text: {type(error).__name__} in its __str__>"


def traceback_of(error: BaseException) -> str:
    """Return an exception's traceback, whatever comes of asking the exception."""
    try:
        return encodable("".join(traceback.format_exception(error)))
    except Exception:  # noqa: BLE001  (it asks the exception for more than its text)
        return encodable("".join(traceback.format_tb(error.__traceback__)) + type(error).__name__ + "\n")


MOST, FIRST = 64 * 1024, 16 * 1024
"""Characters of a traceback that are kept, and how many of them from its beginning: the end says what was raised."""


def bounded(text: str) -> str:
    """Return a traceback of a bounded length: it goes with each answer about the job; a message may be megabytes."""
    if len(text) <= MOST:
        return text
    gap = f"\n… of {len(text)} characters these are the first and the last …\n"
    return text[:FIRST] + gap + text[FIRST + len(gap) - MOST :]


_Text = Annotated[str, BeforeValidator(lambda text: encodable(text) if isinstance(text, str) else text)]


class ErrorReport(BaseModel):
    """Why a run, or one rank of it, failed."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    cause: Cause
    message: _Text
    """One line for people."""
    time: AwareDatetime
    rank: int | None = None
    """Global rank that failed first; None where no rank was at fault."""
    exception: _Text | None = None
    """Qualified name of the exception's type."""
    traceback: Annotated[_Text, AfterValidator(bounded)] | None = None
    """As Python prints it; of a very long one the beginning and the end."""
    signal: str | None = None
    """Name of the signal that ended the rank, such as SIGKILL."""
    exit_code: int | None = None
    oom_kill: bool = False
    """The kernel had just ended a process for want of memory: no device is to blame."""
    log_tail: _Text | None = None
    """The last lines that the rank printed, or its launcher where no rank was at fault: empty where it had printed
    nothing, None where nobody has looked."""

    @classmethod
    def of(cls, error: BaseException, *, cause: Cause, rank: int | None, traceback: str | None) -> Self:
        """Describe an exception: by its text, behind the name of its class where it is not one of our own.

        Those name the field or the file themselves, and `cause` what kind of error it is.
        """
        kind, text = type(error), safe_text(error).strip()
        said = (
            text if text and isinstance(error, TrainingError) else f"{kind.__name__}: {text}" if text else kind.__name__
        )
        return cls(
            cause=cause,
            message="".join(said.splitlines()[:1])[:2000],
            time=datetime.now(UTC),
            rank=rank,
            exception=f"{kind.__module__}.{kind.__qualname__}",
            traceback=traceback,
        )

    @property
    def said(self) -> str:
        """What people are told: the message, after the rank at fault unless any might have been the first to see it."""
        is_shared = self.cause in (Cause.CONFIG, Cause.DATA)
        is_named = self.rank is None or self.message.startswith(f"rank {self.rank} ")
        return self.message if is_named or is_shared else f"rank {self.rank}: {self.message}"

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """Read an error file, or return None where there is none."""
        try:
            return cls.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return None

    def write(self, path: Path) -> None:
        """Write an error file, whole or not at all. Raises OSError."""
        write_atomic(path, self.model_dump_json(indent=2).encode())

    def write_first(self, path: Path, *, writer: str) -> None:
        """Write an error file that several write at once, whole, unless another was there first. Raises OSError.

        `writer` is a name that none of the others has. On a file system without hard links, the last of two that write
        in the same instant has the word.
        """
        own = path.with_name(f".{path.stem}-{writer}{path.suffix}")
        self.write(own)
        try:
            os.link(own, path)
        except FileExistsError:
            pass
        except OSError:
            if not path.exists():
                own.rename(path)
        finally:
            own.unlink(missing_ok=True)


def error_of(report: ErrorReport, run_dir: Path) -> TrainingError:
    """Return what a script is to be told of a run that has ended by an error."""
    if report.cause is Cause.INTERRUPTED:
        return RunInterruptedError(f"{report.message} (run directory {run_dir})")
    return RunFailedError(f"{report.said} (run directory {run_dir})", cause=report.cause)


def signal_name(number: int) -> str:
    """Return the name of a signal for people."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"  # a real-time signal has no name
