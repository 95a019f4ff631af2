"""The answer of a command: what was asked for, alone on standard output, where a program may read it."""

import os
import sys
from contextlib import suppress


class Answer:
    """Standard output, kept for the answer: whatever else this process prints goes to standard error from here on.

    A package may print while it is imported, or as Python ends, from Python or from C.
    """

    def __init__(self) -> None:
        """Raises OSError where standard output is closed."""
        self._file = os.dup(1)
        self._encoding, self._errors = sys.stdout.encoding, sys.stdout.errors
        sys.stdout.flush()
        with suppress(OSError):  # standard error is closed: there is nowhere else to print to
            os.dup2(2, 1)

    def give(self, text: str) -> None:
        """Print what was asked for. Raises OSError: unlike what is said beside it, it must not get lost."""
        with open(self._file, "w", encoding=self._encoding, errors=self._errors) as file:
            file.write(text + "\n")
