"""The roots of this host: whatever a job was accepted with, its run reads and starts nothing outside of them.

This is the wall; that the API refuses the same is a courtesy. Paths are taken with their links followed, and the run
gets them so: a link that is turned round after the look leads nowhere else.
"""

import json
import os
from collections.abc import Iterable
from pathlib import Path

from jobs.roots import Roots, describe, is_beneath, leaves, reference
from jobs.settings import Settings
from trainer.config import DEFAULT_WEIGHTS, SCRIPT, TrainConfig
from trainer.errors import ConfigError, DataError
from trainer.run_dir import DATA_WITHIN_VARIABLE
from trainer.script.options import ScriptOptions, script_options

_STEERING = ("PYTHON", "LD_", "DYLD_", "GCONV_", "GLIBC_")
"""How the names of variables begin that have an interpreter, or the loader of any program, run other code first."""
_STEERING_NAMES = frozenset(
    {"PATH", "ENV", "BASH_ENV", "CUDA_INJECTION64_PATH", "NCCL_NET_PLUGIN", "NCCL_TUNER_PLUGIN"}
)


def permitted(
    train: TrainConfig, settings: Settings, *, needs_root: bool, variables: Iterable[str] = ()
) -> TrainConfig:
    """Return a training with the paths that its data and its program have on this host.

    `needs_root` says that a bare name is that of a data root, and none that the trainer knows; `variables` are names of
    those that the job sets beside `options.env`. Raises ConfigError for a program, and DataError for data, that this
    host's operator does not allow.
    """
    roots = settings.roots
    if train.recipe == SCRIPT:
        return _with_program(train, roots, variables)
    updates: dict[str, object] = {}
    named = reference(train.data)
    if named is None and roots.data:
        updates["data"] = _beneath(train.data, roots.data.values(), f"data: {train.data}", roots)
    elif named is not None and (needs_root or ":" in train.data):
        updates["data"] = _named(*named, roots)
    if roots.data:
        own = [str(settings.run_root), *filter(None, [settings.checkpoint_root])]
        for name, path in (("resume", train.resume), ("weights", train.weights)):
            if path is not None and path != DEFAULT_WEIGHTS:
                updates[name] = _beneath(path, [*roots.data.values(), *own], f"{name}: {path}", roots)
    return train.model_copy(update=updates)


def environment(train: TrainConfig, settings: Settings) -> dict[str, str]:
    """Return the variable that holds a trainer to the data roots in whatever a data set itself names or links to."""
    folders = list(settings.roots.data.values())
    return {DATA_WITHIN_VARIABLE: json.dumps(folders)} if folders and train.recipe != SCRIPT else {}


def _named(name: str, folder: str, roots: Roots) -> str:
    if name not in roots.data:
        there = f"; it has {describe(roots.data)}" if roots.data else ""
        raise DataError(f"data: this host has no data root {name!r}{there}")
    if leaves(folder):
        raise DataError(f"data: {name}:{folder} leads out of the data root {name!r}")
    root = roots.data[name]
    return _beneath(os.path.join(root, folder), [root], f"data: {name}:{folder}", roots)


def _beneath(path: str, allowed: Iterable[str], what: str, roots: Roots) -> str:
    whole = _resolved(path)
    if any(is_beneath(whole, _resolved(root)) for root in allowed):
        return whole
    leads = f" leads to {whole}, which" if whole != path else ""
    raise DataError(f"{what}{leads} is in no data root of this host; it has {describe(roots.data)}")


def _with_program(train: TrainConfig, roots: Roots, variables: Iterable[str]) -> TrainConfig:
    options = script_options(train)
    if not roots.scripts:
        raise ConfigError(
            "recipe: this host runs no programs of users; its operator turns them on with RANKZERO_SCRIPTS=on"
        )
    if not roots.code:
        return train
    for field, names in (("options.env", options.env), ("secrets", variables)):
        for name in names:
            if name.startswith(_STEERING) or name in _STEERING_NAMES:
                raise ConfigError(f"{field}: {name} could start other programs than those of the code roots")
    updates = {
        "cwd": _program_path("cwd", options.cwd, roots),
        "script": _program_path("script", options.script, roots),
    }
    if options.module is not None:
        _refuse_other_module(options, updates["cwd"], roots)
    return train.model_copy(
        update={"options": train.options | {name: path for name, path in updates.items() if path is not None}}
    )


def _program_path(name: str, path: str | None, roots: Roots) -> str | None:
    if path is None:
        return None
    whole = _resolved(path)
    if not any(is_beneath(whole, _resolved(root)) for root in roots.code):
        leads = f" leads to {whole}, which" if whole != path else ""
        raise ConfigError(f"options.{name}: {path}{leads} is in no code root of this host ({', '.join(roots.code)})")
    return whole


def _refuse_other_module(options: ScriptOptions, folder: str | None, roots: Roots) -> None:
    """Python looks for a module in its working folder first, then among all that is installed, which no root holds."""
    if folder is None:
        raise ConfigError(
            f"options.cwd: has to name the folder of the module, in a code root of this host ({', '.join(roots.code)})"
        )
    module = str(options.module)
    path = Path(folder, *module.split("."))
    files = [file for file in (path.with_name(f"{path.name}.py"), path / "__main__.py") if file.is_file()]
    if not files:
        raise ConfigError(f"options.module: there is no module {module} in {folder}")
    for file in files:
        _program_path("module", str(file), roots)


def _resolved(path: str) -> str:
    return os.path.realpath(os.path.expanduser(path))
