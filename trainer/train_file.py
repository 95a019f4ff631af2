"""The file `train.yaml`: what to train and where, for runs without the service."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from trainer.config import TrainConfig
from trainer.devices import parse_device, per_rank_batch, rank_devices
from trainer.environment import RankEnvironment
from trainer.errors import ConfigError, DeviceError
from trainer.run_dir import RunConfig
from trainer.validation import describe

_PLACEMENT = ("device", "nproc_per_node")


@dataclass(frozen=True)
class TrainFile:
    """What a train.yaml, or the keywords of `train()`, say."""

    train: TrainConfig
    device: str = "auto"
    nproc_per_node: int | None = None

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
        train = {name: value for name, value in fields.items() if name not in _PLACEMENT}
        nproc_per_node = fields.get("nproc_per_node")
        if nproc_per_node is not None and (not isinstance(nproc_per_node, int) or isinstance(nproc_per_node, bool)):
            raise DeviceError(f"nproc_per_node: {nproc_per_node!r} is not a number of processes; write 1 or more")
        return cls(train_config(train), parse_device(fields.get("device", "auto")), nproc_per_node)

    def run_config(self) -> RunConfig:
        """Return what our launcher runs. Raises DeviceError where the devices or the batch do not fit."""
        devices = rank_devices(_resolved(self.device), nproc_per_node=self.nproc_per_node)
        per_rank_batch(self.train.batch, len(devices))
        return RunConfig(train=self.train, devices=devices)

    def run_config_under_torchrun(self, environment: RankEnvironment) -> RunConfig:
        """Return what the ranks that torchrun has started run: the device list yields to LOCAL_RANK."""
        count = environment.local_world_size
        devices = tuple(self.device.split(","))
        if self.device == "auto" and _resolved("auto").startswith("cuda"):
            devices = tuple(f"cuda:{index}" for index in range(count))
        elif self.device in ("auto", "cpu"):
            devices = ("cpu",) * count
        elif len(devices) != count:
            raise DeviceError(
                f"device: torchrun has started {count} ranks on this host, and {self.device!r} names {len(devices)}"
            )
        per_rank_batch(self.train.batch, environment.world_size)
        return RunConfig(train=self.train, devices=devices)


def train_config(fields: Mapping[str, Any]) -> TrainConfig:
    """Return the TrainConfig of these fields. Raises ConfigError that names each field in error."""
    try:
        return TrainConfig.model_validate(dict(fields))
    except ValidationError as error:
        raise ConfigError(describe(error)) from error


def _resolved(device: str) -> str:
    """Turn "auto" into one accelerator if there is one, else the CPU."""
    if device != "auto":
        return device
    import torch  # only who writes "auto" pays for it

    if torch.cuda.is_available():
        return "cuda:0"
    return "mps" if torch.backends.mps.is_available() else "cpu"
