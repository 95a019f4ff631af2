"""What a user asks for: the frozen job spec, and the devices it requests."""

from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, field_validator, model_validator
from pydantic_core import PydanticCustomError

from trainer.config import TrainConfig
from trainer.devices import parse_device, per_rank_batch, rank_devices
from trainer.errors import DeviceError

Text = Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[^\x00]*$")]
"""Text that every database can store: not empty, no NUL."""
LabelKey = Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[^\x00=,]*$")]
LabelValue = Annotated[str, Field(max_length=255, pattern=r"^[^\x00]*$")]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)


class DeviceCount(_Frozen):
    """Any `count` CUDA devices of one host, in place of a device list."""

    count: int = Field(ge=1, le=1024, strict=True)
    """How many devices, one rank on each."""
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
    """Devices to train on, one rank each. Stored in one canonical form."""
    nproc_per_node: int | None = Field(default=None, ge=1, le=1024, strict=True)
    """Number of ranks for `device: "cpu"`."""
    train: TrainConfig
    """The training itself, independent of the devices."""
    name: Text | None = None
    """A name for people; need not be unique. Without one, the model's name."""
    priority: int = Field(default=50, ge=0, le=100)
    """Higher starts first; equal ones in order of submission."""
    labels: dict[LabelKey, LabelValue] = Field(default={}, max_length=64)
    """Free text by key, to find jobs by."""
    max_retries: int = Field(default=3, ge=0, le=100)
    """How often a run that the infrastructure lost (host, supervisor, killed rank) is tried again.
    A fault of the training itself is never retried."""

    @field_validator("train")
    @classmethod
    def _batch_divides(cls, train: TrainConfig, info: Any) -> TrainConfig:
        if "device" in info.data and "nproc_per_node" in info.data:
            ranks = _world_size(info.data["device"], info.data["nproc_per_node"])
            if ranks is not None:
                try:
                    per_rank_batch(train.batch, ranks)
                except DeviceError as error:
                    reason = str(error).removeprefix("batch: ")
                    raise PydanticCustomError(
                        "batch", "{reason}", {"reason": reason, "field": "train.batch"}
                    ) from error
        return train

    @model_validator(mode="after")
    def _processes_fit(self) -> Self:
        try:
            if isinstance(self.device, str) and self.device != "auto":
                rank_devices(self.device, nproc_per_node=self.nproc_per_node)
            elif self.nproc_per_node is not None:
                raise DeviceError('nproc_per_node: only device="cpu" takes a number of processes')
        except DeviceError as error:
            reason = str(error).removeprefix("nproc_per_node: ")
            raise PydanticCustomError(
                "nproc_per_node", "{reason}", {"reason": reason, "field": "nproc_per_node"}
            ) from error
        return self

    @property
    def world_size(self) -> int:
        """Number of ranks, over all hosts."""
        ranks = _world_size(self.device, self.nproc_per_node)
        assert ranks is not None, "a validated spec has a device list that fits"
        return ranks


def requested_devices(stored: dict[str, Any]) -> tuple[str | DeviceCount, int]:
    """Return the device request and the world_size of a stored spec, without validating all the rest of it.

    Raises ValueError for one that this version cannot read.
    """
    try:
        device = stored["device"]
        request = device if isinstance(device, str) else DeviceCount.model_validate(device)
        ranks = _world_size(request, stored["nproc_per_node"])
    except (KeyError, TypeError) as error:
        raise ValueError(f"no {error}") from error
    if ranks is None:
        raise ValueError(f"device {device!r} does not fit nproc_per_node")
    return request, ranks


def _world_size(device: str | DeviceCount, nproc_per_node: int | None) -> int | None:
    """Number of ranks, or None where device and nproc_per_node contradict each other (reported on its own)."""
    if isinstance(device, DeviceCount):
        return device.count
    if device == "auto":
        return 1
    try:
        return len(rank_devices(device, nproc_per_node=nproc_per_node))
    except DeviceError:
        return None
