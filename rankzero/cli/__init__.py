"""The command `rankzero`."""

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankzero.cli.app import main as main


def __getattr__(name: str) -> Any:
    """Import lazily: this package's parts are also read one by one."""
    if name == "main":
        try:
            from rankzero.cli.app import main
        except KeyboardInterrupt:  # it takes a moment, in which the command is not there yet to say what that means
            sys.exit(130)
        return main
    raise AttributeError(f"module 'rankzero.cli' has no attribute {name!r}")
