"""Trials: what a command that runs them ends with."""

import os
import signal

import pytest

from trainer.errors import Cause, ConfigError, RunFailedError
from trainer.run_dir import EXIT_DISK_FULL, EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE
from trainer.trials import status_of


@pytest.mark.parametrize(
    ("cause", "status"),
    [(Cause.CONFIG, EXIT_USAGE), (Cause.DISK_FULL, EXIT_DISK_FULL), (Cause.EXCEPTION, EXIT_FAILED)],
)
def test_a_command_ends_with_what_its_trial_has_ended_by_and_says_it(
    cause: Cause, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> int:
        raise RunFailedError("the run on one rank failed: why", cause=cause)

    assert status_of(fail) == status
    assert capsys.readouterr().err == f"{cause}: the run on one rank failed: why\n"


def test_a_command_that_is_stopped_ends_as_interrupted(capsys: pytest.CaptureFixture[str]) -> None:
    def stop() -> int:
        os.kill(os.getpid(), signal.SIGTERM)
        return 0

    assert status_of(stop) == EXIT_INTERRUPTED
    assert capsys.readouterr().err == "interrupted: stopped by SIGTERM\n"


def test_a_command_has_its_own_status_and_what_cannot_be_run_is_not_its_matter() -> None:
    def refuse() -> int:
        raise ConfigError("batch: no")

    assert status_of(lambda: 1) == 1
    with pytest.raises(ConfigError, match="batch: no"):
        status_of(refuse)
