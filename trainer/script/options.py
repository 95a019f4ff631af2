"""The options of the recipe `script`: which program to run, and how. Never imports torch."""

from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from trainer.config import TrainConfig
from trainer.errors import ConfigError
from trainer.names import closest

RESERVED = frozenset(
    {
        "RANK",
        "LOCAL_RANK",
        "WORLD_SIZE",
        "LOCAL_WORLD_SIZE",
        "GROUP_RANK",
        "GROUP_WORLD_SIZE",
        "NODE_RANK",
        "ROLE_NAME",
        "ROLE_RANK",
        "ROLE_WORLD_SIZE",
        "MASTER_ADDR",
        "MASTER_PORT",
        "CUDA_VISIBLE_DEVICES",
    }
)
"""Variables that say who a rank is and what it may use: the run's to set, as are those that begin as below."""
MOST_TOLD = 10
"""Options in error that a message names: each of a hundred thousand arguments may be wrong."""
_RESERVED_PREFIXES = ("RANKZERO_", "TORCHELASTIC_")


def _as_text(value: Any) -> Any:
    """`--epochs 3` is written as a number in YAML and JSON, and every program is handed text."""
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


Text = Annotated[str, Field(max_length=100_000, pattern=r"^[^\x00]*$"), BeforeValidator(_as_text)]
"""Text that can be handed to a process."""
ProgramPath = Annotated[str, Field(min_length=1, max_length=4096, pattern=r"^[^\x00]*$")]
VariableName = Annotated[str, Field(min_length=1, max_length=1024, pattern=r"^[^\x00=]+$")]


class ScriptOptions(BaseModel):
    """The user's own program: each rank runs it as torchrun would."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    script: ProgramPath | None = None
    """Path of the program on the host that trains; instead of `module`. A job's is absolute; one in a train.yaml is
    taken from the folder where the command starts."""
    module: Annotated[str, Field(pattern=r"^\w+(\.\w+)*$", max_length=1024)] | None = None
    """Name of the module to run, as `python -m` does; instead of `script`."""
    args: tuple[Text, ...] = ()
    """Arguments of the program; numbers are handed over as text."""
    cwd: ProgramPath | None = None
    """Folder that the program runs in, absolute for a job. Left out: the folder of `script`; with `module`, the one
    where the command starts, or a job's run directory."""
    env: dict[VariableName, Text] = {}
    """Environment variables on top of those of the host. Which rank a process is, and which devices it sees, the run
    itself says."""
    wandb_shim: bool = False
    """Whether `import wandb` gets the program `rankzero.wandb`, which reports to the run and sends nothing anywhere."""

    @field_validator("env")
    @classmethod
    def _leave_the_run_its_own(cls, env: dict[str, str]) -> dict[str, str]:
        for name in env:
            if name in RESERVED or name.startswith(_RESERVED_PREFIXES):
                raise PydanticCustomError("reserved", "{name} is set by the run itself", {"name": name})
        return env

    @model_validator(mode="after")
    def _name_one_program(self) -> Self:
        if (self.script is None) == (self.module is None):
            raise PydanticCustomError("one_program", "name the program by one of `script`, a path, and `module`")
        return self

    @property
    def program(self) -> str:
        """The program in the user's words."""
        return self.script if self.script is not None else f"-m {self.module}"


def script_options(train: TrainConfig) -> ScriptOptions:
    """Return the options of a training whose recipe is `script`. Raises ConfigError that names the one in error."""
    try:
        return ScriptOptions.model_validate(train.options)
    except ValidationError as error:
        raise ConfigError("; ".join(map(_described, error.errors(include_url=False)[:MOST_TOLD]))) from error


def _described(part: ErrorDetails) -> str:
    field = ".".join(["options", *map(str, part["loc"])])
    if part["type"] == "extra_forbidden":
        near = closest(str(part["loc"][0]), list(ScriptOptions.model_fields))
        meant = f"did you mean {near}?" if near else f"there is {', '.join(ScriptOptions.model_fields)}"
        return f"{field:.100}: recipe script has no such option; {meant}"
    return f"{field}: {part['msg']}" + (f" (got {part['input']!r:.100})" if part["loc"] else "")
