"""The surroundings of a script: the variables that its ranks start with beside those of every rank. No torch."""

import os
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from trainer.config import SCRIPT
from trainer.durable_files import sha256_of
from trainer.errors import ConfigError, DeviceError
from trainer.journal import CheckpointSaved, read_backwards
from trainer.run_dir import RESUME_VARIABLE, RunConfig, RunDir
from trainer.script.options import script_options

_STAND_INS = "stand_ins"
"""Folder of the package rankzero with modules that take the place of others."""


def surroundings(run_dir: RunDir, config: RunConfig, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a script finds on every rank; none for another recipe.

    They are set before its interpreter starts, which reads some of them. `environ` is what the ranks start with
    otherwise. Raises ConfigError for options that are none.
    """
    if config.train.recipe != SCRIPT:
        return {}
    options = script_options(config.train)
    variables = {
        **options.env,
        # Makes env:// a client of the store that rank 0 serves, on every rank (torch.distributed.rendezvous).
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "TORCHELASTIC_RUN_ID": run_dir.path.name,
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_MAX_RESTARTS": "0",
        "GROUP_WORLD_SIZE": str(config.nnodes),
        "ROLE_NAME": "default",
        "ROLE_WORLD_SIZE": str(config.world_size),
        # Empty where there is none, so that it is the same on every rank, however late each asks.
        RESUME_VARIABLE: _checkpoint_to_resume(run_dir, config),
    }
    if config.devices[0] != "mps":
        variables["CUDA_VISIBLE_DEVICES"] = _visible_devices(config, environ)
    if options.wandb_shim:
        searched = variables.get("PYTHONPATH", environ.get("PYTHONPATH", ""))
        variables["PYTHONPATH"] = os.pathsep.join(filter(None, [str(_stand_ins()), searched]))
    return variables


def _visible_devices(config: RunConfig, environ: Mapping[str, str]) -> str:
    """Name the run's devices in rank order, so that LOCAL_RANK is the index of each; nothing for ranks on the CPU."""
    if config.simulated or config.devices[0] == "cpu":
        return ""
    indices = [int(device.removeprefix("cuda:")) for device in config.devices]
    visible = environ.get("CUDA_VISIBLE_DEVICES")
    return ",".join(map(str, indices) if visible is None else _chosen(indices, visible.split(",")))


def _chosen(indices: Sequence[int], visible: Sequence[str]) -> list[str]:
    """Return those of the visible devices: an index is into what this process sees, not into what the driver has."""
    for index in indices:
        if index >= len(visible) or not visible[index].strip():
            raise DeviceError(f"device: 'cuda:{index}' is not among CUDA_VISIBLE_DEVICES={','.join(visible)!r}")
    return [visible[index].strip() for index in indices]


def _checkpoint_to_resume(run_dir: RunDir, config: RunConfig) -> str:
    """Return the path of the newest checkpoint that is as it was when the program told of it, or nothing."""
    for record in read_backwards(run_dir.journal):
        if isinstance(record, CheckpointSaved):
            path = run_dir.path / record.path
            if _is_intact(path, record):
                return str(path)
    return str(config.resume) if config.resume is not None else ""


def _is_intact(path: Path, record: CheckpointSaved) -> bool:
    try:
        if path.stat().st_size != record.size_bytes:
            return False
        return sha256_of(path) == record.sha256
    except OSError:
        return False


def _stand_ins() -> Path:
    """Where the module lies that takes the place of wandb: it reports by the package rankzero, which runs nothing."""
    package = find_spec("rankzero")
    if package is None or not package.submodule_search_locations:
        raise ConfigError("options.wandb_shim: the package rankzero, whose wandb it is, is not installed here")
    return Path(package.submodule_search_locations[0], _STAND_INS)
