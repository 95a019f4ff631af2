"""Reporting: what a user's own program tells the run that it is in; outside a run all of it does nothing, quickly.

The programs run under torchrun as well, and on any machine that has this package: so nothing is imported until there
is a run to report to.
"""

import importlib
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, SupportsIndex

if TYPE_CHECKING:
    from types import ModuleType

    from trainer.user_reports import Reports

_RUN_DIR_VARIABLE = "RANKZERO_RUN_DIR"
_RESUME_VARIABLE = "RANKZERO_RESUME_FROM"
_ROOT = Path(__file__).resolve().parents[1]
"""The folder that this package, and the trainer beside it, are imported from."""
_importing = RLock()
"""Held while `trainer` means ours: of two threads that report first, one would take the other's modules away from it.
Reentrant, for the report of a signal handler."""


def report(*, step: SupportsIndex, epoch: SupportsIndex = 1, **values: object) -> None:
    """Tell the run of values measured after `step` optimizer steps, by the name of the metric.

        rankzero.report(step=step, loss=loss, **{"val/accuracy": accuracy})

    A value is a number, or a tensor or array of a single one; NaN and infinities are told as what they are. `epoch`
    counts from 1. Does nothing outside a run, and on ranks other than 0. Raises TypeError and ValueError that name the
    metric.
    """
    report_values(values, step=step, epoch=epoch)


def report_values(values: Mapping[str, object], *, step: SupportsIndex, epoch: SupportsIndex = 1) -> None:
    """Tell as `report` does, of metrics of any name, also `step`."""
    if (reports := _reports()) is not None:
        reports.report(values, step=step, epoch=epoch)


def is_metric_name(name: str) -> bool:
    """Whether the run takes a metric of this name. Any is as good as another where nothing is told."""
    if _reports() is None:
        return True
    is_taken: bool = _trainer_reports().is_metric_name(name)
    return is_taken


def checkpoint(
    path: str | os.PathLike[str],
    *,
    step: SupportsIndex,
    epoch: SupportsIndex = 0,
    best: bool = False,
    **values: object,
) -> None:
    """Tell the run of a checkpoint file that has been saved, with the validation values that it has.

    The file stays where it is, and is the program's to delete. Its hash is taken now: a file that is written over later
    cannot be resumed from, so give each a name of its own. `epoch` is the number of completed ones. Does nothing
    outside a run, and on ranks other than 0. Raises OSError for a file that is not there, TypeError and ValueError that
    name the metric, and RuntimeError inside a training of `train()`, which saves its own.
    """
    if (reports := _reports()) is not None:
        reports.checkpoint(path, values, step=step, epoch=epoch, best=best)


def resume_path() -> Path | None:
    """Return the last intact checkpoint of the job's earlier attempts, or None. It is the same on every rank."""
    path = os.environ.get(_RESUME_VARIABLE)
    return Path(path) if path else None


def _reports() -> "Reports | None":
    """Return where this process reports to; None outside a run, and on every rank but rank 0."""
    if not os.environ.get(_RUN_DIR_VARIABLE) or os.environ.get("RANK", "0") != "0" or _is_other_rank():
        return None
    reports: Reports = _trainer_reports().Reports.of_this_run()
    return reports


def _is_other_rank() -> bool:
    """Whether it is a rank of a group that the program has made among processes it started itself."""
    distributed = sys.modules.get("torch.distributed")
    return (
        distributed is not None
        and distributed.is_available()
        and distributed.is_initialized()
        and distributed.get_rank() != 0
    )


@cache  # so that only first reports take the lock: a fork at any later moment finds it free
def _trainer_reports() -> "ModuleType":
    with _importing:
        return _import_reports()


@cache  # for who has waited: a second import would make second modules, which know nothing of the first ones' turns
def _import_reports() -> "ModuleType":
    """Import trainer.user_reports, also where the program has a `trainer` of its own, as many do."""
    with _our_trainer():
        return importlib.import_module("trainer.user_reports")


@contextmanager
def _our_trainer() -> Iterator[None]:
    """Have the name `trainer` mean the one beside this package while it is imported."""
    known = sys.modules.get("trainer")
    if known is not None and _is_ours(known):
        yield
        return
    theirs = _taken()
    sys.path.insert(0, str(_ROOT))
    try:
        yield
    finally:
        sys.path.remove(str(_ROOT))
        _taken()  # ours is held by who has imported it; the name is left to a `trainer` that the program may import yet
        sys.modules.update(theirs)


def _is_ours(module: "ModuleType") -> bool:
    return module.__file__ is not None and Path(module.__file__).resolve().parent == _ROOT / "trainer"


def _taken() -> "dict[str, ModuleType]":
    # A list: other threads import, too.
    names = [name for name in list(sys.modules) if name == "trainer" or name.startswith("trainer.")]
    return {name: sys.modules.pop(name) for name in names}
