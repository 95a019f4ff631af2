"""A run that is launched from a terminal: its new directory, and its launch with the display."""

import os
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from trainer.attendance import Attendance
from trainer.errors import ConfigError
from trainer.journal import Completed
from trainer.launch import DEFAULT_GRACE_S, launch
from trainer.outcome import Outcome
from trainer.run_dir import GRACE_VARIABLE, RunDir
from trainer.terminal import RunDisplay


def new_run_dir(output: Path | None) -> Path:
    """Return the folder for a new run: `output`, or the next free one below ./runs.

    Raises ConfigError for an `output` that holds a run already.
    """
    if output is not None:
        if (output / "config.json").exists():
            raise ConfigError(
                f"output: {output} holds a run already; `python -m trainer {output}` continues "
                "it, and to begin anew remove it or name another"
            )
        return output
    stamp = datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")
    number = 1
    while True:
        folder = Path("runs", f"{stamp}-{number}")
        try:
            folder.mkdir(parents=True)
        except FileExistsError:  # another run began in this second
            number += 1
        else:
            return folder


def run_in(run_dir: RunDir) -> Outcome:
    """Launch a prepared run directory, showing how it goes on the terminal."""
    watches: list[Callable[[], None]] = []
    with suppress(OSError, ValueError):  # a configuration that cannot be read is the launcher's to tell
        attendance = Attendance(run_dir, run_dir.read_config())
        attendance.begin()
        watches.append(attendance.update)

    def watch() -> None:
        for look in watches:
            look()

    with RunDisplay(run_dir) as display:
        watches.append(display.update)
        outcome = launch(run_dir, grace_s=_grace_s(), watch=watch)
    if outcome.completed is not None or outcome.has_done_its_part:
        run_dir.call.unlink(missing_ok=True)  # only a run that is not complete has any use for it
    return outcome


def completion(run_dir: RunDir, completed: Completed) -> str:
    """Say how a run has ended: the last metrics, and the best checkpoint with its own.

    Where none was marked as the best, as by a script that compares none, the completion record names the last.
    """
    ended = f"completed: {_shown(completed.values)}".rstrip(": ")
    if completed.best_checkpoint is None:
        return ended
    saved = run_dir.checkpoint_at(completed.best_checkpoint)
    which = "last" if saved is not None and not saved.best else "best"
    values = f" (step {saved.step}: {_shown(saved.values)})" if saved is not None and saved.values else ""
    return f"{ended}; {which} checkpoint {run_dir.path / completed.best_checkpoint}{values}"


def _shown(values: dict[str, float | None]) -> str:
    return "  ".join(f"{name} {value:.4f}" for name, value in values.items() if value is not None)


def _grace_s() -> float:
    text = os.environ.get(GRACE_VARIABLE, "")
    try:
        return float(text) if text else DEFAULT_GRACE_S
    except ValueError as error:
        raise ConfigError(f"environment variable {GRACE_VARIABLE}: {text!r} is not a number of seconds") from error
