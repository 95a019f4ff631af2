"""A stand-in for wandb: the calls of an existing script, told to the run that it is in and to nobody else.

    from rankzero import wandb

What is logged as a number becomes a metric; all else (images, tables, artifacts) is accepted and left out, with one
warning for each kind. Steps count as wandb counts them: `log()` without `step` takes the next one, from 0. Those of a
second run are told behind the first one's, since a training has one series for each metric.
"""

import warnings
from collections.abc import Iterator, Mapping
from typing import Any, Self

from rankzero.reporting import is_metric_name, report_values

_warned: set[str] = set()
_next_step = 0
"""The step behind all that has been told."""


class Error(Exception):
    """A call that wandb itself would refuse."""


class Config(dict[str, Any]):
    """The configuration of a run, by item or by attribute; kept in the program, and told to nobody."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"wandb.config has no {name!r}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def update(self, *given: Any, allow_val_change: bool = True, **named: Any) -> None:
        """Take over the items of a mapping, or of an object such as argparse's Namespace."""
        del allow_val_change  # wandb's word for overwriting, which is allowed here in any case
        for each in given:
            super().update(each if isinstance(each, Mapping) else vars(each))
        super().update(named)


class Run:
    """What `wandb.init()` returns, and `wandb.run` is until it is finished."""

    def __init__(self, *, project: str | None, name: str | None, settings: Any, given: Mapping[str, Any]) -> None:
        self.project, self.name, self.id, self.url, self.disabled = project, name or "", name or "", "", False
        self.config, self.summary = _config, summary
        self.summary.clear()
        if settings is not None:
            self.config.update(settings)
        self.group, self.notes, self.tags = given.get("group"), given.get("notes"), tuple(given.get("tags") or ())
        self._step = 0
        self._begin = _next_step
        """The step of the training that this run's step 0 is: runs, such as those of folds, follow each other."""
        if self._begin:
            _warn("runs", f"there has been a run before: what this one logs is told from step {self._begin} on")

    @property
    def step(self) -> int:
        """The step that the next `log()` without one takes."""
        return self._step

    def log(self, data: Mapping[str, Any], step: int | None = None, commit: bool | None = None, **_: Any) -> None:
        """Tell of values at `step`, or at the step that is under way, which `commit` ends (without `step`: it does)."""
        if step is not None:
            if step < self._step:
                _warn("steps", f"step {step} is before step {self._step} and is left out: steps only ever increase")
                return
            self._step = int(step)
        values = dict(_numbers(data))
        self.summary.update(values)
        self._tell(values)
        if commit or (commit is None and step is None):
            self._step += 1

    def _tell(self, values: Mapping[str, float]) -> None:
        global _next_step  # noqa: PLW0603  (of the runs after this one, too)
        step = self._begin + self._step
        report_values(values, step=step)
        _next_step = max(_next_step, step + 1)

    def finish(self, *_: Any, **__: Any) -> None:
        """End the run: what is logged afterwards is an error, until there is another."""
        global run  # noqa: PLW0603  (wandb's interface is this module)
        if run is self:
            run = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.finish()

    def __getattr__(self, name: str) -> Any:
        return _left_out(f"run.{name}", name)


class _LeftOut:
    """Whatever wandb has beside: it takes any call and does nothing."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def __call__(self, *_: Any, **__: Any) -> "_LeftOut":
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self


run: Run | None = None
"""The run that is going on."""
config = _config = Config()
"""The configuration: what was set before `init()`, and by it."""
summary = Config()
"""The latest value of each metric."""


def init(project: str | None = None, *, name: str | None = None, config: Any = None, **given: Any) -> Run:
    """Begin a run, or return the one that is going on, as wandb does. What else wandb takes is accepted."""
    global run  # noqa: PLW0603  (wandb's interface is this module)
    if run is None:
        run = Run(project=project, name=name, settings=config, given=given)
    elif config is not None:
        run.config.update(config)
    return run


def log(data: Mapping[str, Any], step: int | None = None, commit: bool | None = None, **given: Any) -> None:
    """Tell of values, as `Run.log` does. Raises Error before `init()`, as wandb does."""
    if run is None:
        raise Error("You must call wandb.init() before wandb.log()")
    run.log(data, step=step, commit=commit, **given)


def finish(*_: Any, **__: Any) -> None:
    """End the run that is going on, if there is one."""
    if run is not None:
        run.finish()


def __getattr__(name: str) -> Any:
    return _left_out(name, name)


def _left_out(shown: str, name: str) -> _LeftOut:
    if name.startswith("_"):
        raise AttributeError(name)
    _warn(shown, f"wandb.{shown} is accepted and left out: only numbers are told to the run")
    return _LeftOut()


def _numbers(data: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    """Yield what is a number, nested names joined by a dot as wandb joins them."""
    for key, value in data.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from _numbers(value, f"{name}.")
        elif (number := _number(value)) is None or not is_metric_name(name):
            _warn(f"value {name[:80]}", f"{name[:80]!r} is left out: only numbers are told to the run")
        else:
            yield name, number


def _number(value: Any) -> float | None:
    """Return a number, truth value, or tensor or array of a single one as a float; None for anything else."""
    if isinstance(value, (str, bytes)):
        return None
    item = getattr(value, "item", None)
    try:
        return float(item() if callable(item) and not isinstance(value, _LeftOut) else value)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        return None


def _warn(kind: str, message: str) -> None:
    if kind not in _warned:
        _warned.add(kind)
        warnings.warn(message, stacklevel=3)
