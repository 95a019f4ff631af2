"""What users import: `from rankzero import Client`."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankzero.client import Client as Client

_HOMES = {"Client": "rankzero.client"}


def __getattr__(name: str) -> Any:
    """Import lazily: a script that only wants one of these does not wait for the others."""
    from importlib import import_module

    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'rankzero' has no attribute {name!r}")
