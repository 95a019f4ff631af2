"""Profiling: a trace of a few steps, by torch.profiler, in the run directory."""

import gzip
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile, schedule

from trainer.config import TrainConfig
from trainer.journal import Log
from trainer.reporting import Journal

_WAIT, _WARM_UP, _ACTIVE = 3, 2, 5
"""Steps that are left alone (the first allocate, compile and fill caches), that are profiled and thrown away (which is
the profiler's own start), and that are kept."""
_LARGE_BYTES = 20_000_000


def why_unprofiled(config: TrainConfig, world_size: int) -> str | None:
    """Return why `profile` is without effect in a run, or None where it is not asked for or takes effect."""
    if not config.profile or world_size == 1:
        return None
    return f"profile: without effect among {world_size} ranks; profile the run on one device"


def plan(steps: int) -> tuple[int, int, int]:
    """Return how many of an epoch's steps are left alone, profiled and thrown away, and kept; the last come first."""
    active = min(_ACTIVE, steps)
    warm_up = min(_WARM_UP, steps - active)
    return min(_WAIT, steps - active - warm_up), warm_up, active


class StepProfiler:
    """Traces a few steps of the first epoch that a run trains."""

    def __init__(self, folder: Path, device: torch.device, journal: Journal, *, is_on: bool) -> None:
        self._folder, self._device, self._journal = folder, device, journal
        self._is_due = is_on
        self.is_at_work = False
        """Steps take longer, and after the last of those that are traced the trace is written."""

    @contextmanager
    def first_epoch(self, *, steps_before: int, steps: int) -> Iterator[Callable[[], None]]:
        """Trace a few of the next `steps` steps, after `steps_before`; what is yielded is to be called after each.

        The trace is a file of the folder, named after the steps that it holds; a large one is compressed, which
        chrome://tracing and Perfetto read as well. The journal says where it is. From the second call on, nothing.
        """
        if not self._is_due:
            yield lambda: None
            return
        self._is_due, self.is_at_work = False, True
        wait, warm_up, active = plan(steps)

        def write(profiler: profile) -> None:
            first, last = steps_before + wait + warm_up + 1, steps_before + profiler.step_num
            self._folder.mkdir(exist_ok=True)
            path = self._folder / f"steps-{first}-{last}.json"
            profiler.export_chrome_trace(str(path))
            self.is_at_work = False
            message = f"profile: a trace of steps {first} to {last} is in {_compressed_if_large(path)}"
            self._journal.append(Log, message=message)

        activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if self._device.type == "cuda" else [])]
        planned = schedule(wait=wait, warmup=warm_up, active=active, repeat=1)
        with profile(activities=activities, schedule=planned, on_trace_ready=write) as profiler:
            yield profiler.step


def _compressed_if_large(path: Path) -> Path:
    if path.stat().st_size < _LARGE_BYTES:
        return path
    compressed = path.with_name(path.name + ".gz")
    with path.open("rb") as source, gzip.open(compressed, "wb") as target:
        shutil.copyfileobj(source, target)
    path.unlink()
    return compressed
