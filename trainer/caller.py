"""The caller: what a script hands to train() that is no plain value, and how a rank, a process of its own, gets it."""

import copy
import inspect
import io
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DataParallel, DistributedDataParallel
from torch.nn.utils.parametrize import is_parametrized

from trainer.durable_files import write_atomic
from trainer.error_report import safe_text
from trainer.errors import ConfigError
from trainer.journal import Record
from trainer.main_module import MainModule, refuse_call_during_import
from trainer.run_dir import RunDir


@dataclass(frozen=True)
class Call:
    """What a call of train() hands over beside plain values."""

    model: nn.Module | None
    """The caller's own model with its initial weights; None where the config's `model` is a name."""
    callbacks: tuple[Callable[[Record], None], ...]


_going_on: list[Call] = []
"""The call whose run is going on in this process, a rank, if there is one."""


def call_of(model: object, callbacks: object) -> Call | None:
    """Return the call that a script makes, or None where it hands over nothing but plain values.

    Raises ConfigError naming the argument that is none.
    """
    if isinstance(model, (DistributedDataParallel, DataParallel)):
        raise ConfigError(
            f"model: a {type(model).__name__} is wrapped already; pass its .module, train() wraps it itself"
        )
    if not isinstance(model, (nn.Module, str)):
        shown = f"the class {model.__qualname__}" if isinstance(model, type) else _described(model)
        raise ConfigError(f"model: {shown} is neither the name of a model nor a torch.nn.Module object")
    if not isinstance(callbacks, Sequence) or isinstance(callbacks, str):
        raise ConfigError(f"callbacks: {_described(callbacks)} is no list; write callbacks=[…]")
    for number, callback in enumerate(callbacks):
        if isinstance(callback, type):
            name = callback.__qualname__
            raise ConfigError(f"callbacks[{number}]: the class {name} itself; pass an object of it, {name}()")
        if not callable(callback):
            raise ConfigError(f"callbacks[{number}]: {_described(callback)} cannot be called with a record")
    own = model if isinstance(model, nn.Module) else None
    return Call(own, tuple(callbacks)) if own is not None or callbacks else None


def pack(call: Call) -> bytes:
    """Return all that a rank needs to take the call over; the caller's model stays as it is.

    Raises ConfigError naming the argument that cannot be handed to another process.
    """
    main = MainModule.of_this_process()
    if call.model is not None:
        _refuse_unpicklable("model", call.model, main)
    for number, callback in enumerate(call.callbacks):
        _refuse_unpicklable(f"callbacks[{number}]", callback, main)
    objects = io.BytesIO()
    torch.save((call.model, call.callbacks), objects, pickle_protocol=pickle.DEFAULT_PROTOCOL)
    return pickle.dumps((main, objects.getvalue()))


def copied(call: Call) -> Call:
    """Return the call with a copy of its model on the CPU, for a run in this process: the caller's stays as it is.

    That is where a recipe looks a model over, and what it says of one is the same wherever the caller has put it.
    Raises ConfigError for a model that cannot be copied.
    """
    if call.model is None:
        return call
    try:
        model = copy.deepcopy(call.model).to("cpu")
    except MemoryError:
        raise
    except Exception as error:
        what, why = _described(call.model), f"{type(error).__name__}: {safe_text(error)}"
        raise ConfigError(f"model: {what} cannot be copied ({why}); {_way_out(call.model)}") from error
    model.zero_grad(set_to_none=True)
    return Call(model, call.callbacks)


def write_call(run_dir: RunDir, packed: bytes) -> None:
    """Put a packed call where the ranks of the run look for it."""
    run_dir.path.mkdir(parents=True, exist_ok=True)
    write_atomic(run_dir.call, packed)


def read_call(run_dir: RunDir) -> Call:
    """Return the call that the run was started by: in a rank, rebuilt, with its model on the CPU.

    A rank imports the calling script for it, as multiprocessing's start method "spawn" does: with the caller's
    sys.path, sys.argv and working folder, as `__mp_main__`, which `__main__` is then another name for. Raises
    ConfigError where the script cannot be imported, or does not guard its call of train().
    """
    if _going_on:
        return _going_on[-1]
    try:
        main, objects = pickle.loads(run_dir.call.read_bytes())  # noqa: S301  (written by the caller of this very run)
    except FileNotFoundError as error:
        raise ConfigError(
            f"{run_dir.call}: the objects of the script that started this run are gone, or never left it (torchrun); "
            "start the script again, with resume=… to continue"
        ) from error
    main.take_over()
    try:
        # From wherever the caller's model was: no rank but rank 0 has the caller's device.
        model, callbacks = torch.load(io.BytesIO(objects), map_location="cpu", weights_only=False)
    except MemoryError:
        raise
    except Exception as error:
        raise ConfigError(
            f"model, callbacks: a rank cannot rebuild what it was handed ({type(error).__name__}: {safe_text(error)}); "
            'what that consists of has to be defined at the top level, outside of `if __name__ == "__main__":`'
        ) from error
    _going_on.append(Call(model, callbacks))
    return _going_on[-1]


@contextmanager
def calling(call: Call) -> Iterator[None]:
    """Let this process, a rank that torchrun has started, find the call that is its own."""
    _going_on.append(call)
    try:
        yield
    finally:
        _going_on.remove(call)


def refuse_call_inside_run(called: str) -> None:
    """Raise ConfigError for a call of train(), or the like, in a rank: by the script that it imports, or a callback."""
    refuse_call_during_import(called)
    if _going_on:
        raise ConfigError(
            f"{called} was called inside a run, by a callback or a model; call it in the script, afterwards"
        )


class _Trial(pickle.Pickler):
    """Pickles all but tensors, which always can be, into nothing, and notes what the main module defines of it."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), protocol=pickle.DEFAULT_PROTOCOL)
        self.of_main: list[str] = []

    def persistent_id(self, value: object) -> bool | None:
        return True if isinstance(value, (torch.Tensor, torch.UntypedStorage)) else None

    def reducer_override(self, value: object) -> Any:
        if isinstance(value, (type, FunctionType)) and value.__module__ == "__main__":
            self.of_main.append(value.__qualname__)
        return NotImplemented


def _refuse_unpicklable(name: str, value: object, main: MainModule) -> None:
    kind = _described(value)
    trial = _Trial()
    try:
        trial.dump(value)
    except MemoryError:
        raise
    except Exception as error:
        raise ConfigError(
            f"{name}: {kind} cannot be handed to the ranks, which are processes of their own "
            f"({type(error).__name__}: {safe_text(error)}); {_way_out(value)}"
        ) from error
    if trial.of_main and not main.is_importable:
        raise ConfigError(
            f"{name}: {kind} cannot be handed to the ranks, which are processes of their own: {trial.of_main[0]} is "
            "defined in a notebook, an interactive session or other code that no rank can import; put it into a .py "
            "file and import it from there"
        )


def _described(value: object) -> str:
    if inspect.isroutine(value):
        return f"the function {value.__qualname__}"
    kind = type(value)
    return f"an object of {'' if kind.__module__ == 'builtins' else f'{kind.__module__}.'}{kind.__qualname__}"


def _way_out(value: object) -> str:
    if isinstance(value, nn.Module) and any(map(is_parametrized, value.modules())):
        return (
            "torch pickles no model with parametrizations (the new weight_norm, spectral_norm, orthogonal): start the "
            "script with torchrun, under which nothing is pickled"
        )
    if inspect.isroutine(value) and "<l" in value.__qualname__:  # <lambda>, <locals>
        return "define it with `def` at the top level of the script, or pass an object of a class that is defined there"
    if "<locals>" in type(value).__qualname__:
        return "define the class at the top level of the script, not inside a function"
    return (
        "it must not hold lambdas, functions or classes defined inside functions, open files, locks or connections: "
        "define what it uses at the top level of a script or module, and open things where they are first used"
    )
