"""The command `rankzero`."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankzero.cli.app import main as main


def __getattr__(name: str) -> Any:
    """Import lazily: this package's parts are also read one by one."""
    if name == "main":
        from rankzero.cli.app import main

        return main
    raise AttributeError(f"module 'rankzero.cli' has no attribute {name!r}")
