"""The main module: the script that called train(), as its ranks import it to rebuild objects of its classes."""

import runpy
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from trainer.error_report import safe_text
from trainer.errors import ConfigError

_MAIN = "__mp_main__"
"""Name that a rank runs the script under: multiprocessing's, which other libraries know, too."""
_former_mains: list[ModuleType] = []
"""Kept, since code of theirs may still be running."""


@dataclass
class _Import:
    """An import of a main module."""

    reached: str = ""
    """What the script has called at its top level that starts ranks, such as train()."""


_going_on: list[_Import] = []
"""The import that is going on in this process, if there is one."""


def refuse_call_during_import(called: str) -> None:
    """Raise ConfigError where the script that is being imported makes a call that starts ranks: each would make it."""
    if _going_on:
        _going_on[-1].reached = called
        raise ConfigError(f"{called} was called while a rank imported the script")


@dataclass(frozen=True)
class MainModule:
    """The main module of a calling process, and what it takes to import it in another, as "spawn" does it."""

    module: str | None
    """Name of the module that `python -m` ran."""
    script: str | None
    """Path of the script that `python` ran."""
    sys_path: tuple[str, ...]
    argv: tuple[str, ...]

    @classmethod
    def of_this_process(cls) -> "MainModule":
        """Describe this process's own. A notebook's, or that of `python -c`, is none that can be imported."""
        main = sys.modules["__main__"]
        spec = getattr(main, "__spec__", None)
        file = Path(getattr(main, "__file__", None) or "")
        return cls(
            # A package's __main__ does its work unguarded, by custom; multiprocessing does not import one either.
            module=spec.name if spec is not None and spec.name.split(".")[-1] != "__main__" else None,
            script=str(file.absolute()) if spec is None and file.is_file() else None,
            sys_path=tuple(sys.path),
            argv=tuple(sys.argv),
        )

    @property
    def is_importable(self) -> bool:
        return self.module is not None or self.script is not None

    def take_over(self) -> None:
        """Make it the main module of this process, which then finds what the calling process did where that did.

        Raises ConfigError where the script does not guard its call of train(), or its top level raises.
        """
        sys.path[:], sys.argv[:] = self.sys_path, self.argv
        if self.is_importable:
            main = ModuleType(_MAIN)
            main.__dict__.update(self._run())
            _former_mains.append(sys.modules["__main__"])
            sys.modules["__main__"] = sys.modules[_MAIN] = main

    def _run(self) -> dict[str, Any]:
        """Run the top level, and return the names that it defines."""
        shown = self.script or f"python -m {self.module}"
        content: dict[str, Any] = {}
        failure: BaseException | None = None
        importing = _Import()
        _going_on.append(importing)
        try:
            if self.module is not None:
                content = runpy.run_module(self.module, run_name=_MAIN, alter_sys=True)
            else:
                content = runpy.run_path(str(self.script), run_name=_MAIN)
        except (Exception, SystemExit) as error:  # noqa: BLE001  (whatever a script does at its top level)
            failure = error
        finally:
            _going_on.remove(importing)
        if importing.reached:  # also where the script has caught what was raised at that
            raise ConfigError(
                f"{shown} calls {importing.reached} at its top level; each rank imports the script, to get at its "
                'model and callbacks, and came to the call again: put it under `if __name__ == "__main__":`'
            )
        if failure is not None:
            raise ConfigError(
                f"{shown} cannot be imported by the ranks, which get the script's model and callbacks from it: its top "
                f"level raised {type(failure).__name__}: {safe_text(failure)}; put what is not for them under "
                '`if __name__ == "__main__":`'
            ) from failure
        return content
