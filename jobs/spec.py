"""What a user asks for: the frozen job spec, and the devices it requests."""

from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, field_validator, model_validator
from pydantic_core import PydanticCustomError

from trainer.config import SCRIPT, TrainConfig
from trainer.devices import MOST_PROCESSES, check_batch, check_strategy, parse_device, rank_count, rank_devices
from trainer.errors import ConfigError, DeviceError
from trainer.script.options import ScriptOptions, script_options

Text = Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[^\x00]*$")]
"""Text that every database can store: not empty, no NUL."""
LabelKey = Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[^\x00=,]*$")]
LabelValue = Annotated[str, Field(max_length=255, pattern=r"^[^\x00]*$")]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)


class DeviceCount(_Frozen):
    """Any `count` CUDA devices of one host, in place of a device list."""

    count: int = Field(ge=1, le=MOST_PROCESSES, strict=True)
    """How many devices."""
    host: Text | None = None
    """Only on the host of this name."""
    min_memory_gb: float | None = Field(default=None, gt=0)
    """Only devices with at least this much memory, in 10^9 bytes."""
    name: Text | None = None
    """Only devices whose model name contains this text, upper or lower case."""


def _canonical_device(value: Any) -> Any:
    if isinstance(value, (dict, DeviceCount)):
        return value
    try:
        return parse_device(value)
    except DeviceError as error:
        raise PydanticCustomError("device", "{reason}", {"reason": str(error).removeprefix("device: ")}) from error


Device = Annotated[
    str | DeviceCount,
    BeforeValidator(_canonical_device),
    WithJsonSchema(
        {
            "title": "Device",
            "description": 'Where to train: `"0,1"`, `[0, 1]`, `"cuda:0"`, `"cpu"`, `"mps"`, `"auto"`, '
            "or a number of devices.",
            "anyOf": [
                {"type": "string", "examples": ["0,1", "cuda:0", "cpu", "auto"]},
                {"type": "integer", "minimum": 0, "maximum": 9999},
                {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "string"}]}, "minItems": 1},
                DeviceCount.model_json_schema(),
            ],
        }
    ),
]


class JobSpec(_Frozen):
    """A training job as submitted: what to train (`train`), where (`device`), and policy (the rest)."""

    device: Device = "auto"
    """Devices to train on, one rank on each (with `train.strategy` `dp`, one rank for all). Stored in one canonical
    form."""
    nproc_per_node: int | None = Field(default=None, ge=1, le=MOST_PROCESSES, strict=True)
    """Number of ranks for `device: "cpu"`."""
    train: TrainConfig
    """The training itself, independent of the devices."""
    name: Text | None = None
    """A name for people; need not be unique. Without one, the name of the model, or of the script's file or module."""
    priority: int = Field(default=50, ge=0, le=100)
    """Higher starts first; equal ones in order of submission."""
    labels: dict[LabelKey, LabelValue] = Field(default={}, max_length=64)
    """Free text by key, to find jobs by."""
    max_retries: int = Field(default=3, ge=0, le=100)
    """How often a run that the infrastructure lost (host, supervisor, killed rank) is tried again.
    A fault of the training itself is never retried."""

    @field_validator("train")
    @classmethod
    def _suits_the_devices(cls, train: TrainConfig, info: Any) -> TrainConfig:
        if train.recipe == SCRIPT:
            _check("train.*", lambda: _check_program(script_options(train)))
            return train  # what it does with a batch is its own
        if "device" in info.data and "nproc_per_node" in info.data:
            devices = _devices(info.data["device"], info.data["nproc_per_node"])
            if devices is not None:
                _check("train.strategy", lambda: check_strategy(train.strategy, devices))
                _check("train.*", lambda: check_batch(train, devices))
        return train

    @model_validator(mode="after")
    def _processes_fit(self) -> Self:
        def check() -> None:
            if isinstance(self.device, str) and self.device != "auto":
                rank_devices(self.device, nproc_per_node=self.nproc_per_node)
            elif self.nproc_per_node is not None:
                raise DeviceError('nproc_per_node: only device="cpu" takes a number of processes')

        _check("nproc_per_node", check)
        return self

    @property
    def shown_name(self) -> str:
        """Its name, or one that says what it runs."""
        if self.name is not None or self.train.recipe != SCRIPT:
            return self.name or self.train.model
        options = script_options(self.train)
        return (options.module or PurePosixPath(options.script or "").name)[:255]

    @property
    def device_count(self) -> int:
        """Number of devices wanted, over all hosts."""
        devices = _devices(self.device, self.nproc_per_node)
        assert devices is not None, "a validated spec has a device list that fits"
        return len(devices)

    @property
    def world_size(self) -> int:
        """Number of ranks, over all hosts."""
        return rank_count(self.train.strategy, self.device_count)


def requested_devices(stored: dict[str, Any]) -> tuple[str | DeviceCount, int]:
    """Return the device request of a stored spec, and how many devices that is, without validating all the rest of it.

    Raises ValueError for one that this version cannot read.
    """
    try:
        device = stored["device"]
        request = device if isinstance(device, str) else DeviceCount.model_validate(device)
        devices = _devices(request, stored["nproc_per_node"])
    except (KeyError, TypeError) as error:
        raise ValueError(f"no {error}") from error
    if devices is None:
        raise ValueError(f"device {device!r} does not fit nproc_per_node")
    return request, len(devices)


def requested_ranks(stored: dict[str, Any]) -> int:
    """Return the world_size of a stored spec, as `requested_devices` reads one. Raises ValueError as it does."""
    _, device_count = requested_devices(stored)
    train = stored.get("train")
    strategy = train.get("strategy") if isinstance(train, dict) else None
    return rank_count(str(strategy), device_count)  # a spec from before there were strategies names none


def _devices(device: str | DeviceCount, nproc_per_node: int | None) -> tuple[str, ...] | None:
    """The devices wanted, one for each rank of "ddp", by kind where they are not named yet.

    None where device and nproc_per_node contradict each other (reported on its own).
    """
    if isinstance(device, DeviceCount):
        return ("cuda",) * device.count
    if device == "auto":
        return ("auto",)
    try:
        return rank_devices(device, nproc_per_node=nproc_per_node)
    except DeviceError:
        return None


def _check_program(options: ScriptOptions) -> None:
    """Raise ConfigError for a path that means something only in the submitter's own working folder."""
    for name, path in (("script", options.script), ("cwd", options.cwd)):
        if path is not None and not PurePosixPath(path).is_absolute():
            raise ConfigError(f"options.{name}: {path!r} has to be an absolute path, on the host that trains")


def _check(field: str, check: Callable[[], object]) -> None:
    """Turn the ConfigError of a check into an error of that field; `*` is the one that it names."""
    try:
        check()
    except ConfigError as error:
        named, _, rest = str(error).partition(": ")
        field = field.replace("*", named)
        kind = field.rpartition(".")[2]
        reason = rest if field.endswith(named) else str(error)
        raise PydanticCustomError(kind, "{reason}", {"reason": reason, "field": field}) from error
