"""The run directory: the files of one placement, and the only contract between a supervisor and the trainer.

config.json          what to run, written before the start          (RunConfig)
journal.jsonl        rank 0's append-only events                    (trainer.journal)
error.json           why it failed: the first failing rank          (ErrorReport)
ranks/N.log          standard output and error of local rank N
ranks/N.error.json   what local rank N itself knew of its failure   (ErrorReport)
ranks/N.progress     how far local rank N is                        (Progress)
checkpoints/         the checkpoint files that the journal names
trainer.log          output of the launcher, where a supervisor has started it
stopping             there once the launcher has told a script's ranks to stop
profile/             a trace of a few steps, with `profile`         (trainer.profiling)
call.pkl             objects of the script that called train()      (trainer.caller)
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from trainer.config import TrainConfig
from trainer.devices import MOST_PROCESSES, rank_count
from trainer.durable_files import write_atomic
from trainer.error_report import ErrorReport
from trainer.journal import CheckpointSaved, Completed, read_backwards

RUN_DIR_VARIABLE = "RANKZERO_RUN_DIR"
"""Environment variable that every process of a run carries: how its processes are found and proven dead."""
GRACE_VARIABLE = "RANKZERO_TRAINER_GRACE_S"
"""Environment variable of the launcher: seconds that the ranks get to stop at a common step and save."""
RESUME_VARIABLE = "RANKZERO_RESUME_FROM"
"""Environment variable of a script: the checkpoint that its earlier attempt reached; empty where there is none."""
DATA_WITHIN_VARIABLE = "RANKZERO_DATA_WITHIN"
"""Environment variable of every process of a run: a JSON list of the folders that data is read from, and no other
(`trainer.data.data_files`). Without it, data may lie anywhere."""
_LONG_PHASES = ("starting", "compiling", "waiting")
"""Phases in which a rank may be without progress for `_LONGER` times as long as for a batch."""
_LONGER = 10
_FIRST_WORD_S = 600.0
"""What a rank has at least until it says anything: to load torch takes a busy host minutes, whatever a batch takes."""
EXIT_FAILED = 1
"""Exit status of a run that failed; error.json says why."""
EXIT_USAGE = 2
"""Exit status of a command line or configuration that cannot be run."""
EXIT_DISK_FULL = 74
"""Exit status of a run, or of one rank, that ended for want of disk space (EX_IOERR): its error file may be missing."""
EXIT_INTERRUPTED = 75
"""Exit status of a run that ended early on SIGINT or SIGTERM (EX_TEMPFAIL: try again later)."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class RunConfig(_Frozen):
    """What one placement runs: the training, and the devices it has."""

    train: TrainConfig
    devices: tuple[str, ...] = Field(min_length=1)
    """Devices of this node, in rank order and as the run's processes number them: `cuda:0`, `cpu`, `mps`. One rank on
    each, but for `train.strategy` "dp", whose one rank has them all."""
    nnodes: int = Field(default=1, ge=1, le=MOST_PROCESSES)
    """Number of nodes (hosts); each has its own launcher and as many ranks as this one."""
    node_rank: int = Field(default=0, ge=0, le=MOST_PROCESSES - 1)
    """Which of the nodes this is; node 0 has rank 0."""
    master_addr: str = "127.0.0.1"
    """Name or address of node 0, as the others reach it."""
    master_port: int = Field(default=0, ge=0, le=65535)
    """Port of node 0 at which the ranks meet; 0 takes a free one, which only a run on one node can."""
    simulated: bool = False
    """The CUDA devices are simulated: each rank computes on the CPU."""
    resume: Path | None = None
    """Checkpoint of an earlier attempt to continue from; comes before `train.resume`. On another node than node 0, this
    node's own file of the one that node 0 continues from."""
    resume_step: int | None = Field(default=None, ge=0)
    """Global step of `resume`, where whoever hands it over knows: the file that a script saved does not say."""
    weights: Path | None = None
    """File of weights to begin with, on this node; comes before `train.weights`."""
    call: bool = False
    """The run directory's `call.pkl` holds objects of the script that called `train()`: its model, its callbacks."""
    max_steps: int | None = Field(default=None, ge=1)
    """End after this many optimizer steps, though the schedule has more: for trials of a configuration."""
    hang_limit_s: float | None = Field(default=None, gt=0)
    """Seconds that a rank may be without progress, ten times as many while it starts, compiles or waits for the others,
    and 600 at least until it has loaded torch; None watches none."""
    micro_batches: int = Field(default=1, ge=1)
    """Parts that each global batch is computed in, one after the other: more than one where the whole did not fit into
    a device's memory. It divides the batch of a rank."""
    job_id: int | None = None
    """The service's job, for messages; None outside the service."""
    attempt: int = Field(default=1, ge=1)
    """Which try at the job this is."""

    @property
    def local_world_size(self) -> int:
        """Number of ranks on this node."""
        return rank_count(self.train.strategy, len(self.devices))

    @property
    def world_size(self) -> int:
        """Number of ranks on all nodes."""
        return self.nnodes * self.local_world_size


class Progress(_Frozen):
    """How far a rank is; rewritten in place at every batch."""

    phase: Literal["starting", "compiling", "training", "evaluating", "waiting", "saving", "finished", "stopped"]
    """`compiling` is a step whose batch is of a new size (kernels are compiled, chosen or recorded), or that is
    profiled. `waiting`: its own part is done, and the others are still to evaluate or rank 0 to save. The last two are
    its last words: it has passed the barrier behind all work, or was asked to stop. A rank that ends without either has
    failed, whatever its exit status."""
    step: int
    time: AwareDatetime
    present: int | None = None
    """Ranks that have come to the roll call so far, which rank 0 counts while it waits for the others."""


def quiet_limit_s(reached: Progress | None, hang_limit_s: float) -> float:
    """Return for how long a rank may be without progress where it is, or that has not said anything yet."""
    if reached is None:
        return max(_LONGER * hang_limit_s, _FIRST_WORD_S)
    return hang_limit_s * (_LONGER if reached.phase in _LONG_PHASES else 1)


@dataclass(frozen=True)
class RunDir:
    """Paths of one run directory, and the whole-file reads and writes."""

    path: Path

    @property
    def config(self) -> Path:
        return self.path / "config.json"

    @property
    def journal(self) -> Path:
        return self.path / "journal.jsonl"

    @property
    def error(self) -> Path:
        return self.path / "error.json"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def profile(self) -> Path:
        return self.path / "profile"

    @property
    def call(self) -> Path:
        return self.path / "call.pkl"

    @property
    def ranks(self) -> Path:
        return self.path / "ranks"

    def log(self, local_rank: int) -> Path:
        return self.ranks / f"{local_rank}.log"

    @property
    def launcher_log(self) -> Path:
        return self.path / "trainer.log"

    @property
    def stopping(self) -> Path:
        return self.path / "stopping"

    def is_stopping(self) -> bool:
        """Whether the launcher has been asked to stop: how a script's rank can tell why its program came to an end."""
        return self.stopping.exists()

    def rank_error(self, local_rank: int) -> Path:
        return self.ranks / f"{local_rank}.error.json"

    def progress(self, local_rank: int) -> Path:
        return self.ranks / f"{local_rank}.progress"

    def create(self, config: RunConfig) -> None:
        """Make the folders and write config.json."""
        for folder in (self.ranks, self.checkpoints):
            folder.mkdir(parents=True, exist_ok=True)
        write_atomic(self.config, config.model_dump_json(indent=2).encode())

    def read_config(self) -> RunConfig:
        return RunConfig.model_validate_json(self.config.read_bytes())

    def read_error(self) -> ErrorReport | None:
        return ErrorReport.read(self.error)

    def read_rank_error(self, local_rank: int) -> ErrorReport | None:
        return ErrorReport.read(self.rank_error(local_rank))

    def read_progress(self, local_rank: int) -> Progress | None:
        """Return how far the rank is, or None where it has not said so yet."""
        try:
            return Progress.model_validate_json(self.progress(local_rank).read_bytes())
        except (FileNotFoundError, ValidationError):
            return None  # not there yet, or read in the middle of a rewrite

    def completed(self) -> Completed | None:
        """Return the completion record, or None where the run has not succeeded. Raises JournalError."""
        last = next(read_backwards(self.journal), None)
        return last if isinstance(last, Completed) else None

    def last_checkpoint(self) -> CheckpointSaved | None:
        """Return the newest checkpoint that the journal names: the one to continue from. Raises JournalError."""
        newest_first = read_backwards(self.journal)
        return next((record for record in newest_first if isinstance(record, CheckpointSaved)), None)

    def best_checkpoint(self) -> str | None:
        """Return the path, relative to the run directory, of the best checkpoint so far. Raises JournalError."""
        newest_first = (record for record in read_backwards(self.journal) if isinstance(record, CheckpointSaved))
        return next((record.path for record in newest_first if record.best), None)

    def checkpoint_at(self, path: str) -> CheckpointSaved | None:
        """Return what the journal says of the checkpoint at `path`, relative to this directory. Raises JournalError."""
        newest_first = read_backwards(self.journal)
        return next((each for each in newest_first if isinstance(each, CheckpointSaved) and each.path == path), None)
