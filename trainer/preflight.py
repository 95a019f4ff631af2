"""The preflight: what the process that starts a run can tell of its inputs before the run has a directory.

Nothing here imports torch; where it is loaded already, model and devices are looked at as well.
"""

import os
import sys
from pathlib import Path
from typing import Any

from trainer.config import DEFAULT_WEIGHTS, SCRIPT, TrainConfig
from trainer.data.known import KNOWN_DATA, data_path, refuse_missing_files
from trainer.errors import CheckpointError, ConfigError, DataError
from trainer.recipes.options import options_of
from trainer.recipes.own_options import OWN_OPTIONS
from trainer.recipes.registry import refuse_unknown_recipe
from trainer.run_dir import RunConfig, RunDir
from trainer.schedules import refuse_endless_warmup
from trainer.script.options import ScriptOptions, script_options


def located(train: TrainConfig) -> dict[str, Any]:
    """Return the options that are paths, made whole: a run has to continue from any working folder.

    Raises ConfigError for a `data` that is neither a known name nor a path.
    """
    if train.recipe == SCRIPT:
        return {"options": train.options | _located_program(train)}
    paths = {}
    if train.data not in KNOWN_DATA:
        paths["data"] = str(data_path(train.data).absolute())
    if train.resume is not None:
        paths["resume"] = str(_expanded(train.resume).absolute())
    if train.weights is not None and train.weights != DEFAULT_WEIGHTS:
        paths["weights"] = str(_expanded(train.weights).absolute())
    return paths


def check_inputs(config: RunConfig, *, written: TrainConfig, has_own_model: bool = False) -> None:
    """Raise for an input that is not there, before anything is started for it.

    `written` is what to train in the user's own words. Several nodes hear what is wrong with one of them when they
    meet: one that did not even come would have the others wait for it.

    Raises:
        ConfigError: for an unknown name of a data set or a recipe, an option that a recipe of our own does not take, a
            file of weights that is not there, a warm-up that does not end and, where torch is loaded, for an unknown
            model, an option that a package's recipe does not take or a device that this host does not have.
        DataError: for a data folder that is not there, and the missing files of a data set that is known by name.
        CheckpointError: for a checkpoint that is not there.
    """
    if config.nnodes > 1:
        return
    if written.recipe == SCRIPT:
        _refuse_missing_program(script_options(config.train))
        return
    if written.data in KNOWN_DATA:
        refuse_missing_files(written.data)
    else:
        _refuse_missing_folder(written.data, data_path(written.data))
    if written.resume is not None:
        _refuse_missing_checkpoint(written.resume, _expanded(written.resume))
    if written.weights is not None and written.weights != DEFAULT_WEIGHTS:
        _refuse_missing_weights(written.weights, _expanded(written.weights))
    refuse_endless_warmup(written)
    refuse_unknown_recipe(written.recipe)
    if written.recipe in OWN_OPTIONS:  # those of a package's are its own to read, once it is imported
        options_of(written, OWN_OPTIONS[written.recipe])
    if "torch" in sys.modules:
        _check_devices(config)
        _check_recipe(written, has_own_model=has_own_model)


def _located_program(train: TrainConfig) -> dict[str, str]:
    """Return the script's options that are paths, made whole; a module runs where the command starts."""
    options = script_options(train)
    paths = {"script": options.script, "cwd": options.cwd or (os.curdir if options.module is not None else None)}
    return {name: os.path.abspath(os.path.expanduser(path)) for name, path in paths.items() if path is not None}


def _refuse_missing_program(options: ScriptOptions) -> None:
    if options.script is not None and not os.path.isfile(options.script):
        raise ConfigError(f"options.script: there is no file {options.script}")
    if options.cwd is not None and not os.path.isdir(options.cwd):
        raise ConfigError(f"options.cwd: there is no folder {options.cwd}")


def best_of(run_dir: Path) -> str:
    """Return the end of an error message about a folder in place of a checkpoint file: which file is meant, perhaps."""
    best = RunDir(run_dir).best_checkpoint()
    return f"; the best of this run is {run_dir / best}" if best is not None else ""


def _expanded(path: str) -> Path:
    return Path(os.path.expanduser(path))


def _refuse_missing_folder(written: str, path: Path) -> None:
    if not os.path.isdir(path):
        wrong = f"{written} is not a folder" if os.path.lexists(path) else f"folder {written} does not exist"
        raise DataError(f"data: {wrong}{_whole(written, path)}")


def _refuse_missing_checkpoint(written: str, path: Path) -> None:
    if os.path.isdir(path):
        raise CheckpointError(f"resume: {written} is a folder, and has to be a checkpoint file{best_of(path)}")
    if not os.path.isfile(path):
        raise CheckpointError(f"resume: there is no checkpoint {written}{_whole(written, path)}")


def _refuse_missing_weights(written: str, path: Path) -> None:
    if os.path.isdir(path):
        raise ConfigError(f"weights: {written} is a folder, and has to be a file of weights{best_of(path)}")
    if not os.path.isfile(path):
        raise ConfigError(
            f"weights: there is no file {written}{_whole(written, path)}; {DEFAULT_WEIGHTS} takes torchvision's"
        )


def _whole(written: str, path: Path) -> str:
    return f" (looked for {path.absolute()})" if str(path.absolute()) != written else ""


def _check_devices(config: RunConfig) -> None:
    from trainer.process_group import local_device

    for device in config.devices:
        local_device(device, simulated=config.simulated)


def _check_recipe(train: TrainConfig, *, has_own_model: bool) -> None:
    from trainer.recipes.model_checks import refuse_unknown_model
    from trainer.recipes.registry import build_recipe

    recipe = build_recipe(train)
    if not has_own_model:
        refuse_unknown_model(train, known=recipe.models())
