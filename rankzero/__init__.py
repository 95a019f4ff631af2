"""What users import: `from rankzero import Client`, and `rankzero.report(…)` in a program of their own."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankzero import wandb as wandb
    from rankzero.client import Client as Client
    from rankzero.errors import DownloadError as DownloadError
    from rankzero.errors import MissingPackageError as MissingPackageError
    from rankzero.errors import RankzeroError as RankzeroError
    from rankzero.errors import RefusedError as RefusedError
    from rankzero.errors import UnreachableError as UnreachableError
    from rankzero.errors import UsageError as UsageError
    from rankzero.errors import WaitTimeoutError as WaitTimeoutError
    from rankzero.reporting import checkpoint as checkpoint
    from rankzero.reporting import report as report
    from rankzero.reporting import resume_path as resume_path

_ERRORS = (
    "DownloadError",
    "MissingPackageError",
    "RankzeroError",
    "RefusedError",
    "UnreachableError",
    "UsageError",
    "WaitTimeoutError",
)
_HOMES = {
    "Client": "rankzero.client",
    "checkpoint": "rankzero.reporting",
    "report": "rankzero.reporting",
    "resume_path": "rankzero.reporting",
    **dict.fromkeys(_ERRORS, "rankzero.errors"),
}


def __getattr__(name: str) -> Any:
    """Import lazily: a script that only wants one of these does not wait for the others."""
    from importlib import import_module

    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name == "wandb":
        return import_module("rankzero.wandb")
    raise AttributeError(f"module 'rankzero' has no attribute {name!r}")
