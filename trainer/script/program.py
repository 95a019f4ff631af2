"""The program: a script or module of the user's own, run as the main module of this process."""

import os
import runpy
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType, TracebackType

from trainer.errors import ConfigError
from trainer.script.options import ScriptOptions

_PACKAGE = "trainer"
_ROOT = Path(__file__).resolve().parents[2]
"""The folder that this package is imported from."""


class OurModules:
    """The modules of this package, which step aside while the program runs.

    Many a program has a `trainer.py` or a package `trainer` of its own, and under torchrun it would import that.
    """

    def __init__(self) -> None:
        self._aside: dict[str, ModuleType] | None = None

    def step_aside(self) -> None:
        self._aside = _taken()

    @contextmanager
    def back(self) -> Iterator[None]:
        """Have them where our own imports look for them; afterwards the program's are back."""
        if self._aside is None:
            yield
            return
        theirs = _taken()
        sys.modules.update(self._aside)
        try:
            yield
        finally:
            self._aside = _taken()
            sys.modules.update(theirs)


def _taken() -> dict[str, ModuleType]:
    """Take all modules under our name out of those that are imported, and return them."""
    names = [name for name in sys.modules if name == _PACKAGE or name.startswith(f"{_PACKAGE}.")]
    return {name: sys.modules.pop(name) for name in names}


def enter(options: ScriptOptions, *, otherwise: Path) -> None:
    """Give this process the program's working folder, arguments and search path, as `python PROGRAM` would.

    `otherwise` is the folder where neither `cwd` nor a script says one. Raises ConfigError where there is no such
    program or folder.
    """
    script = Path(options.script) if options.script is not None else None
    if script is not None and not script.is_file():
        raise ConfigError(f"options.script: there is no file {script} on this host")
    folder = Path(options.cwd) if options.cwd is not None else script.parent if script is not None else otherwise
    try:
        os.chdir(folder)
    except OSError as error:
        raise ConfigError(f"options.cwd: {folder} cannot be entered ({error.strerror})") from error
    first = str(script.resolve().parent if script is not None else folder)
    if sys.flags.safe_path:  # PYTHONSAFEPATH, on the host or in `env`: our own start has put nothing first
        sys.path.insert(0, first)
    else:
        sys.path[0] = first
    if str(_ROOT) not in sys.path:
        sys.path.append(str(_ROOT))  # last: `import rankzero` works, and hides nothing of the program's
    if options.module is not None and PathFinder.find_spec(options.module.partition(".")[0]) is None:
        raise ConfigError(f"options.module: there is no module {options.module} to be found from {folder}")
    sys.argv = [options.script or str(options.module), *options.args]


def run(options: ScriptOptions) -> None:
    """Run the program to its end, and raise what it raises."""
    if options.script is not None:
        runpy.run_path(options.script, run_name="__main__")
    else:
        assert options.module is not None, "one of the two is given"
        runpy.run_module(options.module, run_name="__main__", alter_sys=True)


def own_traceback(error: BaseException) -> TracebackType | None:
    """Return the traceback from the program's first frame on: ours before it are no help to its author."""
    trace = error.__traceback__
    while trace is not None and _is_before_the_program(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    return trace


def _is_before_the_program(file: str) -> bool:
    return file.startswith("<frozen runpy") or file == runpy.__file__ or Path(file).parent == Path(__file__).parent
