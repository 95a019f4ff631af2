"""Secrets by name: how a job says which it is given, and in which variables of its environment."""

from typing import Annotated

from pydantic import Field

from trainer.config import SCRIPT, TrainConfig
from trainer.errors import ConfigError
from trainer.script.options import RESERVED, script_options

MOST_SECRETS = 64
SecretName = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$")]
SecretVariable = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
_OF_THE_LAUNCHER = ("LD_", "PYTHON", "RANKZERO_", "TORCHELASTIC_")
"""What variables begin with that decide how the launcher itself, which is not the user's program, runs."""


def check(secrets: dict[str, str], train: TrainConfig) -> None:
    """Raise ConfigError for secrets that would reach no program, or take the place of another variable."""
    if not secrets:
        return
    if train.recipe != SCRIPT:
        raise ConfigError("secrets: only programs of one's own (recipe script) are given any")
    given = script_options(train).env
    for variable in secrets:
        if variable in RESERVED or variable == "PATH" or variable.startswith(_OF_THE_LAUNCHER):
            raise ConfigError(f"secrets: the run sets {variable}, or depends on it; take another name")
        if variable in given:
            raise ConfigError(f"secrets: train.options.env sets {variable} too; leave one of them out")
