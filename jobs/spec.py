"""What a user asks for: the frozen job spec, and the devices it requests."""

from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema, field_validator, model_validator
from pydantic_core import PydanticCustomError

from jobs.device_count import DeviceCount, Text
from jobs.planner.request import Request
from jobs.secret_names import MOST_SECRETS, SecretName, SecretVariable
from jobs.secret_names import check as check_secrets
from jobs.whole_numbers import WholeNumbers
from trainer.config import SCRIPT, TrainConfig
from trainer.devices import MOST_PROCESSES, WAYS, check_batch, check_strategy, parse_device, rank_count, rank_devices
from trainer.errors import ConfigError, DeviceError
from trainer.script.options import ScriptOptions, script_options

LabelKey = Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[^\x00=,]*$")]
LabelValue = Annotated[str, Field(max_length=255, pattern=r"^[^\x00]*$")]

MOST_LABELS = 64


class _Frozen(WholeNumbers):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)


def _canonical_device(value: Any) -> Any:
    if isinstance(value, (dict, DeviceCount)):
        return value
    try:
        return parse_device(value)
    except DeviceError as error:
        reason = str(error).removeprefix("device: ")
        if reason.endswith(WAYS):  # the trainer knows of lists alone
            reason += ', or a number of devices: {"count": 2}'
        raise PydanticCustomError("device", "{reason}", {"reason": reason}) from error


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


class CheckpointChoice(_Frozen):
    """Which checkpoint of a job another one starts from, and how."""

    checkpoint: int | None = Field(default=None, ge=1, le=2**63 - 1, strict=True)
    """Id of the checkpoint; without one, the job's last for `resume`, its best for `weights`."""
    mode: Literal["weights", "resume"] = "weights"
    """`weights` begins anew with its weights; `resume` goes on where it was, with the same data, seed and batch."""


class StartFrom(CheckpointChoice):
    """The checkpoint of another job, or of an earlier one, that a job starts from."""

    job: int = Field(ge=1, le=2**63 - 1, strict=True)
    """Id of the job that saved it."""


class JobSpec(_Frozen):
    """A training job as submitted: what to train (`train`), where (`device`), and policy (the rest)."""

    device: Device = "auto"
    """Devices to train on, one rank on each (with `train.strategy` `dp`, one rank for all). Stored in one canonical
    form."""
    nproc_per_node: int | None = Field(default=None, ge=1, le=MOST_PROCESSES, strict=True)
    """Number of ranks for `device: "cpu"`."""
    host: Text | None = None
    """Only on the host of this name; with a number of devices, `device.host` says the same."""
    nodes: int = Field(default=1, ge=1, le=MOST_PROCESSES, strict=True)
    """Number of hosts that train together, each with the devices that `device` asks for."""
    train: TrainConfig
    """The training itself, independent of the devices."""
    name: Text | None = None
    """A name for people; need not be unique. Without one, the name of the model, or of the script's file or module."""
    priority: int = Field(default=50, ge=0, le=100, strict=True)
    """Higher starts first. A job that waits longer, or whose user had less of late, may come before one of higher
    priority: docs/planning.md says by how much."""
    labels: dict[LabelKey, LabelValue] = Field(default={}, max_length=MOST_LABELS)
    """Free text by key, to find jobs by."""
    user: Text | None = None
    """Whom it is for: quotas and fair share go by it. The command fills in who is logged in."""
    preemptible: bool = Field(default=False, strict=True)
    """Whether it may be stopped, with a checkpoint, for a job of higher priority. It is queued again, and spends no
    retry."""
    max_retries: int = Field(default=3, ge=0, le=100, strict=True)
    """How often a run that the infrastructure lost (host, supervisor, killed or hanging rank) is tried again.
    A fault of the training itself is never retried."""
    time_limit_s: float | None = Field(default=None, gt=0, le=1e9, strict=True)
    """Seconds that it may train, over all attempts; then it saves a checkpoint and has failed."""
    hang_limit_s: float | None = Field(default=None, ge=1, le=1e9, strict=True)
    """Seconds that a rank may be without progress: no batch, in training or evaluation. Then the run is ended, with the
    stacks of all ranks in their logs, and tried again. Start and compilation get ten times as long, and to load torch
    ten minutes at least. None takes the service's own; a script is watched only where it has one."""
    start_from: StartFrom | None = None
    """The checkpoint of another job to start from."""
    checkpoint_root: Text | None = None
    """Where checkpoints are copied to, so that other hosts can continue from them: a folder that those share, or an
    fsspec URL. None takes the service's own."""

    secrets: dict[SecretVariable, SecretName] = Field(default={}, max_length=MOST_SECRETS)
    """Secrets that a program of one's own is given: the variable of its environment, and the name of the secret."""

    @field_validator("train")
    @classmethod
    def _suits_the_devices(cls, train: TrainConfig, info: Any) -> TrainConfig:
        nodes = info.data.get("nodes", 1)
        if train.recipe == SCRIPT:
            _check("train.*", lambda: _check_program(script_options(train)))
            _check("nodes", lambda: _check_program_nodes(nodes))
            return train  # what it does with a batch is its own
        if "device" in info.data and "nproc_per_node" in info.data:
            devices = _devices(info.data["device"], info.data["nproc_per_node"])
            if devices is not None:
                _check("train.strategy", lambda: check_strategy(train.strategy, devices, nnodes=nodes))
                _check("train.*", lambda: check_batch(train, devices, nnodes=nodes))
        return train

    @field_validator("secrets")
    @classmethod
    def _reach_a_program(cls, secrets: dict[str, str], info: Any) -> dict[str, str]:
        if "train" in info.data:
            _check("secrets", lambda: check_secrets(secrets, info.data["train"]))
        return secrets

    @field_validator("checkpoint_root")
    @classmethod
    def _means_the_same_anywhere(cls, root: str | None) -> str | None:
        _check("checkpoint_root", lambda: _check_root(root))
        return root

    @model_validator(mode="after")
    def _processes_fit(self) -> Self:
        def check() -> None:
            if isinstance(self.device, str) and self.device != "auto":
                rank_devices(self.device, nproc_per_node=self.nproc_per_node)
            elif self.nproc_per_node is not None:
                raise DeviceError('nproc_per_node: only device="cpu" takes a number of processes')

        _check("nproc_per_node", check)
        return self

    @model_validator(mode="after")
    def _hosts_fit(self) -> Self:
        _check("host", lambda: _pinned_host(self.device, self.host, self.nodes))
        return self

    @model_validator(mode="after")
    def _start_fits(self) -> Self:
        _check("start_from", lambda: _check_start(self.start_from, self.train))
        return self

    @property
    def shown_name(self) -> str:
        """Its name, or one that says what it runs."""
        if self.name is not None or self.train.recipe != SCRIPT:
            return (self.name or self.train.model)[:255]
        options = script_options(self.train)
        return (options.module or PurePosixPath(options.script or "").name)[:255]

    @property
    def request(self) -> Request:
        """What the planner reads of it."""
        devices = _devices(self.device, self.nproc_per_node)
        assert devices is not None, "a validated spec has a device list that fits"
        return Request(
            device=self.device,
            per_node=len(devices),
            nodes=self.nodes,
            host=_pinned_host(self.device, self.host, self.nodes),
            preemptible=self.preemptible,
            time_limit_s=self.time_limit_s,
        )

    @property
    def world_size(self) -> int:
        """Number of ranks, over all hosts."""
        return self.nodes * rank_count(self.train.strategy, self.request.per_node)


def stored_request(stored: dict[str, Any]) -> Request:
    """Return the request of a stored spec without validating all the rest of it.

    Raises ValueError for one that this version cannot read.
    """
    try:
        device = stored["device"]
        wanted = device if isinstance(device, str) else DeviceCount.model_validate(device)
        devices = _devices(wanted, stored["nproc_per_node"])
    except (KeyError, TypeError) as error:
        raise ValueError(f"no {error}") from error
    if devices is None:
        raise ValueError(f"device {device!r} does not fit nproc_per_node")
    # A spec from before there were several nodes names none.
    nodes = stored.get("nodes", 1)
    host = _pinned_host(wanted, stored.get("host"), nodes)
    return Request(
        device=wanted,
        per_node=len(devices),
        nodes=nodes,
        host=host,
        preemptible=stored.get("preemptible", False),
        time_limit_s=stored.get("time_limit_s"),
    )


def requested_ranks(stored: dict[str, Any]) -> int:
    """Return the world_size of a stored spec, as `stored_request` reads one. Raises ValueError as it does."""
    request = stored_request(stored)
    train = stored.get("train")
    strategy = train.get("strategy") if isinstance(train, dict) else None
    # A spec from before there were strategies names none.
    return request.nodes * rank_count(str(strategy), request.per_node)


def _pinned_host(device: str | DeviceCount, host: str | None, nodes: int) -> str | None:
    """The one host that the job may use, named beside the devices or within their count; raises ConfigError if that
    contradicts itself."""
    within = device.host if isinstance(device, DeviceCount) else None
    if host is not None and within is not None and host != within:
        raise ConfigError(f"host: {host!r} is not {within!r}, which device names; leave one of them out")
    pinned = host or within
    if pinned is not None and nodes > 1:
        raise ConfigError(f"host: {pinned!r} is one host, and nodes is {nodes}; leave one of them out")
    return pinned


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


def _check_start(start: StartFrom | None, train: TrainConfig) -> None:
    """Raise ConfigError for a job that would have two things to begin with, or a script that cannot take any."""
    if start is None:
        return
    if train.recipe == SCRIPT and start.mode == "weights":
        raise ConfigError("a script loads its weights itself; mode resume hands it the file (rankzero.resume_path)")
    for name, value in (("resume", train.resume), ("weights", train.weights if start.mode == "weights" else None)):
        if value is not None:
            raise ConfigError(f"train.{name} names {value!r} to begin with; leave one of them out")


def _check_root(root: str | None) -> None:
    if root is not None and "://" not in root and not PurePosixPath(root).is_absolute():
        raise ConfigError(f"checkpoint_root: {root!r} has to be an absolute path, on the hosts, or a URL")


def _check_program_nodes(nodes: int) -> None:
    if nodes > 1:
        raise ConfigError(f"nodes: recipe script runs on one node, and nodes is {nodes}")


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
