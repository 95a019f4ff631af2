"""The file `train.yaml`: what to train and where, for runs without the service."""

import dataclasses
import math
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import yaml
from pydantic import ValidationError

from trainer.config import TrainConfig
from trainer.devices import MOST_PROCESSES, parse_device, rank_devices
from trainer.environment import RankEnvironment
from trainer.errors import ConfigError, DeviceError
from trainer.placement import check_placement
from trainer.preflight import located
from trainer.run_dir import RunConfig
from trainer.validation import describe


@dataclass(frozen=True)
class TrainFile:
    """What a train.yaml, or the keywords of `train()`, say: what to train, and where."""

    train: TrainConfig
    device: str = "auto"
    """Devices of this host, one rank on each: an index (`0`), a list (`0,1` or `[0, 1]`), `cpu`, `mps`, or `auto`,
    which is one accelerator if there is one, else the CPU."""
    nproc_per_node: int | None = None
    """Number of ranks for device `cpu`."""
    nnodes: int = 1
    """Number of hosts that train together, each started with the same options but for `node_rank`."""
    node_rank: int = 0
    """Which of the `nnodes` hosts this is, from 0; node 0 writes the journal and the checkpoints."""
    master_addr: str | None = None
    """Name or address at which the other nodes reach node 0; a loopback address keeps all of the run on one host."""
    master_port: int = 0
    """Port of node 0 at which the ranks of several nodes meet, a free one; on one node, 0 takes any."""
    hang_limit_s: float | None = None
    """Seconds that a rank may be without progress, which a batch is, in training and in evaluation; for a program of
    its own (recipe `script`), a report. Then the run is ended, with the rank that hangs named and the stacks of all in
    their logs. To start and to compile it has ten times as long, and ten minutes at least to load torch. Left out,
    nobody watches."""

    @classmethod
    def read(cls, path: Path, **overrides: Any) -> "TrainFile":
        """Read a YAML file; overrides that are not None come first. Raises ConfigError naming the field."""
        try:
            content = yaml.safe_load(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise ConfigError(f"{path}: not a readable YAML file: {error}") from error
        if not isinstance(content, dict):
            raise ConfigError(f"{path}: not a mapping of names to values")
        chosen = {name: value for name, value in overrides.items() if value is not None}
        return cls.of(content | chosen)

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> "TrainFile":
        """Split fields into what to train and where. Raises ConfigError naming the field."""
        where = {"device", *LAUNCH_FIELDS}
        train = {name: value for name, value in fields.items() if name not in where}
        return cls(
            train_config(train),
            parse_device(fields.get("device", "auto")),
            nproc_per_node=_integer(fields, "nproc_per_node", None, least=1, most=MOST_PROCESSES),
            nnodes=_integer(fields, "nnodes", 1, least=1, most=MOST_PROCESSES),
            node_rank=_integer(fields, "node_rank", 0, least=0, most=MOST_PROCESSES - 1),
            master_addr=_address(fields),
            master_port=_integer(fields, "master_port", 0, least=0, most=65535),
            hang_limit_s=_seconds(fields, "hang_limit_s"),
        )

    def run_config(self) -> RunConfig:
        """Return what our launcher runs on this node. Raises ConfigError where nodes, devices or batch do not fit."""
        config = RunConfig(
            train=self._train_of(self.nnodes),
            devices=rank_devices(_resolved(self.device), nproc_per_node=self.nproc_per_node),
            nnodes=self.nnodes,
            node_rank=self.node_rank,
            master_addr=self._master_addr(),
            master_port=self.master_port,
            hang_limit_s=self.hang_limit_s,
        )
        check_placement(config)
        return config

    def run_config_under_torchrun(self, environment: RankEnvironment) -> RunConfig:
        """Return what the ranks that torchrun has started on this node run: where to train is torchrun's to say.

        The nodes and their meeting point are the environment's, and the device list yields to LOCAL_RANK: one of as
        many devices as ranks says which rank takes which, another only of which kind. Raises ConfigError where they do
        not fit.
        """
        nnodes = max(1, environment.world_size // environment.local_world_size)
        config = RunConfig(
            train=self._train_of(nnodes),
            devices=self._devices_under_torchrun(environment),
            nnodes=nnodes,
            node_rank=environment.node_rank,
        )
        if nnodes > 1:  # on one node it is for this time only: a launcher that continues it takes a port of its own
            meeting_point = {"master_addr": environment.master_addr, "master_port": environment.master_port}
            config = config.model_copy(update=meeting_point)
        if config.world_size != environment.world_size:
            raise ConfigError(
                f"nproc-per-node: torchrun has started {environment.local_world_size} ranks on this node and "
                f"{environment.world_size} in all; start as many on every node"
            )
        check_placement(config)
        return config

    def _train_of(self, nnodes: int) -> TrainConfig:
        """Return what to train: on one node with whole paths; several compare theirs, from other working folders."""
        return train_config(self.train.model_dump() | located(self.train)) if nnodes == 1 else self.train

    def _devices_under_torchrun(self, environment: RankEnvironment) -> tuple[str, ...]:
        count = environment.local_world_size
        if self.train.strategy != "ddp" and environment.world_size > 1:
            raise ConfigError(
                f"strategy: {self.train.strategy!r} is one process, and torchrun has started {environment.world_size}; "
                "start it with `python -m trainer`, or leave strategy out"
            )
        device = _resolved(self.device)
        devices = tuple(device.split(","))
        if self.train.strategy != "ddp" or len(devices) == count:
            return devices
        if device == "mps" and self.device == "auto":
            device = "cpu"
        if device == "mps":
            raise DeviceError(
                f"device: torchrun has started {count} ranks on this host, which has one 'mps'; name cpu, or start one"
            )
        return ("cpu",) * count if device == "cpu" else tuple(f"cuda:{local_rank}" for local_rank in range(count))

    def _master_addr(self) -> str:
        if self.master_addr is not None:
            return self.master_addr
        if self.node_rank > 0 and self.nnodes > 1:
            raise ConfigError("master_addr: a node other than node 0 has to be told the name or address of node 0")
        # On node 0 itself, what matters is that it is no loopback address: the others are on other hosts.
        return socket.gethostname() if self.nnodes > 1 else "127.0.0.1"


LAUNCH_FIELDS = tuple(field.name for field in dataclasses.fields(TrainFile) if field.name not in ("train", "device"))
"""The launch fields: where ranks run, in torchrun's words, and how long the launcher bears one that does nothing."""
OPTIONS = (*TrainConfig.model_fields, "device", *LAUNCH_FIELDS)
"""All that a train.yaml may hold."""


def train_config(fields: Mapping[str, Any]) -> TrainConfig:
    """Return the TrainConfig of these fields. Raises ConfigError that names each field in error."""
    try:
        return TrainConfig.model_validate(dict(fields))
    except ValidationError as error:
        raise ConfigError(describe(error, options=OPTIONS)) from error


@overload
def _integer(fields: Mapping[str, Any], name: str, default: int, *, least: int, most: int) -> int: ...
@overload
def _integer(fields: Mapping[str, Any], name: str, default: None, *, least: int, most: int) -> int | None: ...
def _integer(fields: Mapping[str, Any], name: str, default: int | None, *, least: int, most: int) -> int | None:
    value = fields.get(name)
    if value is None:
        return default
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
        return value
    raise ConfigError(f"{name}: {value!r} is not a whole number from {least} to {most}")


def _seconds(fields: Mapping[str, Any], name: str) -> float | None:
    value = fields.get(name)
    if value is None:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf:
        return float(value)
    raise ConfigError(f"{name}: {value!r} is not a number of seconds above 0")


def _address(fields: Mapping[str, Any]) -> str | None:
    value = fields.get("master_addr")
    if value is None or (isinstance(value, str) and value.strip()):
        return value and value.strip()
    raise ConfigError(f"master_addr: {value!r} is not the name or address of a host")


def _resolved(device: str) -> str:
    """Turn "auto" into one accelerator if there is one, else the CPU."""
    if device != "auto":
        return device
    import torch  # only who writes "auto" pays for it

    if torch.cuda.is_available():
        return "cuda:0"
    return "mps" if torch.backends.mps.is_available() else "cpu"
