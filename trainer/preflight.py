"""The preflight: what the process that starts a run can tell of its inputs before the run has a directory.

Nothing here imports torch; where it is loaded already, model and devices are looked at as well.
"""

import os
import sys
from pathlib import Path

from trainer.config import TrainConfig
from trainer.data.known import KNOWN_DATA, data_path, refuse_missing_files
from trainer.errors import CheckpointError, ConfigError, DataError
from trainer.names import nearest
from trainer.run_dir import RunConfig, RunDir


def located(train: TrainConfig) -> dict[str, str]:
    """Return the options that are paths, made whole: a run has to continue from any working folder.

    Raises ConfigError for a `data` that is neither a known name nor a path.
    """
    paths = {}
    if train.data not in KNOWN_DATA:
        paths["data"] = str(data_path(train.data).absolute())
    if train.resume is not None:
        paths["resume"] = str(_resume_path(train.resume).absolute())
    return paths


def check_inputs(config: RunConfig, *, written: TrainConfig, has_own_model: bool = False) -> None:
    """Raise for an input that is not there, before anything is started for it.

    `written` is what to train in the user's own words. Several nodes hear what is wrong with one of them when they
    meet: one that did not even come would have the others wait for it.

    Raises:
        ConfigError: for an unknown name of a data set and, where torch is loaded, of a model or device.
        DataError: for a data folder that is not there, and the missing files of a data set that is known by name.
        CheckpointError: for a checkpoint that is not there.
    """
    if config.nnodes > 1:
        return
    if written.data in KNOWN_DATA:
        refuse_missing_files(written.data)
    else:
        _refuse_missing_folder(written.data, data_path(written.data))
    if written.resume is not None:
        _refuse_missing_checkpoint(written.resume, _resume_path(written.resume))
    if "torch" in sys.modules:
        _check_devices(config)
        if not has_own_model:
            _check_model(written)


def best_of(run_dir: Path) -> str:
    """Return the end of an error message about a folder in place of a checkpoint file: which file is meant, perhaps."""
    best = RunDir(run_dir).best_checkpoint()
    return f"; the best of this run is {run_dir / best}" if best is not None else ""


def _resume_path(resume: str) -> Path:
    return Path(os.path.expanduser(resume))


def _refuse_missing_folder(written: str, path: Path) -> None:
    if not path.is_dir():
        wrong = f"{written} is not a folder" if path.exists() else f"folder {written} does not exist"
        raise DataError(f"data: {wrong}{_whole(written, path)}")


def _refuse_missing_checkpoint(written: str, path: Path) -> None:
    if path.is_dir():
        raise CheckpointError(f"resume: {written} is a folder, and has to be a checkpoint file{best_of(path)}")
    if not path.is_file():
        raise CheckpointError(f"resume: there is no checkpoint {written}{_whole(written, path)}")


def _whole(written: str, path: Path) -> str:
    return f" (looked for {path.absolute()})" if str(path.absolute()) != written else ""


def _check_devices(config: RunConfig) -> None:
    from trainer.process_group import local_device

    for device in config.devices:
        local_device(device, simulated=config.simulated)


def _check_model(train: TrainConfig) -> None:
    from trainer.recipes.registry import recipe_type

    models = recipe_type(train.recipe).models()
    if train.model not in models:
        raise ConfigError(f"model: {train.model!r} is no model of {train.recipe}; {nearest(train.model, models)}")
