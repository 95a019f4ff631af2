"""A run that is launched from a terminal: its new directory, and its launch with the display."""

import os
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from trainer.errors import ConfigError
from trainer.launch import DEFAULT_GRACE_S, launch
from trainer.outcome import Outcome
from trainer.run_dir import GRACE_VARIABLE, RunConfig, RunDir
from trainer.terminal import RunDisplay, say


def new_run_dir(output: Path | None) -> Path:
    """Return the folder for a new run: `output`, or the next free one below ./runs.

    Raises ConfigError for an `output` that holds a run already.
    """
    if output is not None:
        if (output / "config.json").exists():
            raise ConfigError(f"output: {output} holds a run already; `python -m trainer {output}` continues it")
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
    with suppress(OSError, ValueError):  # a configuration that cannot be read is the launcher's to tell
        _say_what_it_waits_for(run_dir.read_config())
    with RunDisplay(run_dir) as display:
        return launch(run_dir, grace_s=_grace_s(), watch=display.update)


def _say_what_it_waits_for(config: RunConfig) -> None:
    if config.node_rank > 0:
        at, within = f"{config.master_addr} port {config.master_port}", f"{config.train.timeout_s:g} s (timeout_s)"
        say(f"node {config.node_rank} of {config.nnodes}: looks for node 0 at {at}, and gives up after {within}")


def _grace_s() -> float:
    text = os.environ.get(GRACE_VARIABLE, "")
    try:
        return float(text) if text else DEFAULT_GRACE_S
    except ValueError as error:
        raise ConfigError(f"environment variable {GRACE_VARIABLE}: {text!r} is not a number of seconds") from error
