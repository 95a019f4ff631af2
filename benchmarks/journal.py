"""What the journal costs a training step: the same loop with it and without, in turns."""

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.report import Line, spread
from trainer.config import TrainConfig
from trainer.environment import RankEnvironment
from trainer.process_group import ProcessGroup
from trainer.reporting import Journal, ProgressFile, SilentJournal, open_journal
from trainer.run_dir import RunConfig, RunDir
from trainer.training import Training

TURNS = 5
CONFIG = TrainConfig(
    model="squeezenet1_1", data="digits", image_size=32, epochs=1, batch=64, lr=0.01, num_workers=0, log_every=1
)


def measure(say: Callable[[str], None]) -> list[Line]:
    """Time one epoch on one CPU rank, journal on and off in turns, with a record at every single step."""
    say("journal: an epoch to warm up …")
    with_journal, without = [], []
    with tempfile.TemporaryDirectory(prefix="rankzero-bench-") as folder:
        _step_ms(Path(folder) / "warm-up", with_journal=True)
        for turn in range(TURNS):
            with_journal.append(_step_ms(Path(folder) / f"with-{turn}", with_journal=True))
            without.append(_step_ms(Path(folder) / f"without-{turn}", with_journal=False))
            step = f"a step takes {with_journal[-1]:.1f} ms with the journal, {without[-1]:.1f} ms without"
            say(f"journal: turn {turn + 1} of {TURNS}: {step}")
    ratio = statistics.median(with_journal) / statistics.median(without)
    return [
        Line(
            "training step, a journal record at each",
            spread(with_journal, "ms"),
            f"without journal: {spread(without, 'ms')}",
            ratio,
        )
    ]


class _Timed:
    """A journal that knows when its first and its last metric record came."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.times: list[float] = []

    def append(self, kind: type, *, durable: bool = False, **fields: object) -> None:
        self._journal.append(kind, durable=durable, **fields)
        if "train/loss" in str(fields.get("values", "")):
            self.times.append(time.perf_counter())


def _step_ms(folder: Path, *, with_journal: bool) -> float:
    """Milliseconds for each step of an epoch, the first one, which allocates, left out."""
    run_dir = RunDir(folder)
    run_config = RunConfig(train=CONFIG, devices=("cpu",))
    run_dir.create(run_config)
    environment = RankEnvironment(rank=0, local_rank=0, world_size=1, local_world_size=1)
    group = ProcessGroup.join(environment, None, device="cpu", simulated=False, timeout_s=60)
    training = Training(run_dir, run_config, group, ProgressFile(run_dir, local_rank=0))
    timed = _Timed(open_journal(run_dir, rank=0) if with_journal else SilentJournal())
    training.journal = timed
    training.run()
    return (timed.times[-1] - timed.times[0]) / (len(timed.times) - 1) * 1000
