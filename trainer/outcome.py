"""The outcome: how a run ended on this node, and which rank was at fault. Never imports torch."""

import signal
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from trainer.config import SCRIPT
from trainer.device_faults import abort_cause, advice
from trainer.error_report import ErrorReport, signal_name
from trainer.errors import Cause, os_error_cause
from trainer.journal import Completed
from trainer.log_tail import log_tail
from trainer.oom_kills import OomKill
from trainer.run_dir import EXIT_DISK_FULL, EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE, RunConfig, RunDir

_MISSING_DEVICE = "trainer.errors.MissingDeviceError"
_NO_MEMORY = {
    OomKill.OWN: "the run was out of the memory that it may have; take fewer num_workers or a smaller batch",
    OomKill.ANYBODY: (
        "the kernel's OOM killer was at work at that moment: the host, or the part of it that this run shares, was out "
        "of memory, by this run or by a neighbour; if it goes on, take fewer num_workers or a smaller batch"
    ),
}
"""What a rank's end by SIGKILL, or a loader process's, means."""


@dataclass(frozen=True)
class Outcome:
    """How a run ended: with a completion record, or with an error that is also in error.json, should there be room."""

    completed: Completed | None = None
    error: ErrorReport | None = None
    has_done_its_part: bool = False
    """On a node other than node 0, which alone has the completion record: its ranks ended after that was written."""
    disk_is_full: bool = False
    """There was no room for error.json."""

    @property
    def is_success(self) -> bool:
        return self.completed is not None or self.has_done_its_part

    @property
    def exit_status(self) -> int:
        """What `python -m trainer` ends with."""
        if self.is_success:
            return 0
        assert self.error is not None
        status = exit_status(self.error.cause)
        return EXIT_DISK_FULL if self.disk_is_full and status == EXIT_FAILED else status


def exit_status(cause: Cause) -> int:
    """Return what a command ends with where a run has ended so."""
    match cause:
        case Cause.INTERRUPTED:
            return EXIT_INTERRUPTED
        case Cause.CONFIG:
            return EXIT_USAGE  # though found by a rank, such as a device that is missing: it is no other fault
        case Cause.DISK_FULL:
            return EXIT_DISK_FULL
        case _:
            return EXIT_FAILED


@dataclass(frozen=True)
class RankEnd:
    """The end of one rank that ended by itself."""

    status: int
    """Exit status, or the negative number of the signal that ended it."""
    seen: datetime
    oom_kill: OomKill | None = None
    """The kernel had just ended some process for want of memory."""
    phase: str | None = None
    """Of its last Progress: its own word for what the exit status says. Any code may call os._exit()."""

    @property
    def was_stopped(self) -> bool:
        """Whether it was asked to stop: by a signal, or by a rank that was."""
        return (self.status, self.phase) == (EXIT_INTERRUPTED, "stopped")

    @property
    def is_failure(self) -> bool:
        return not self.was_stopped and (self.status, self.phase) != (0, "finished")


def conclude(
    run_dir: RunDir,
    config: RunConfig,
    ended: Mapping[int, RankEnd],
    *,
    stopped_by: signal.Signals | None,
    hang: ErrorReport | None = None,
) -> Outcome:
    """Say how the run ended, from its files and from the ranks of this node that ended by themselves, by local rank.

    `stopped_by` is the first signal that asked the launcher to stop, if any did; `hang` why it has ended the ranks
    itself. Writes error.json.
    """
    if completed := run_dir.completed():
        run_dir.error.unlink(missing_ok=True)  # of a rank that hung, and yet went on while it was asked where it was
        return Outcome(completed=completed)  # whatever happened in the teardown afterwards
    if config.node_rank > 0 and _passed_the_last_barrier(run_dir, config):
        return Outcome(has_done_its_part=True)
    if hang is not None:
        return failed(run_dir, hang, config=config)
    error = _first_failure(run_dir, config, ended)
    if stopped_by is not None and (error is None or _follows_a_stop(error, config)):
        error = _interruption(run_dir, config, f"stopped by {stopped_by.name}")
    elif (error is None or error.cause is Cause.COMMUNICATION) and any(end.was_stopped for end in ended.values()):
        error = _interruption(run_dir, config, "a rank was asked to stop")
    elif error is None:
        local_rank, end = min(ended.items(), key=lambda item: item[1].seen)
        rank = _rank(config, local_rank)
        error = _early_end(rank, end, "the journal has no completion record")
    elif config.nnodes > 1 and error.cause is Cause.COMMUNICATION and not _is_ours(error):
        message = f"node {config.node_rank} lost its peers: why, the other nodes tell ({error.message})"
        error = error.model_copy(update={"message": message, "rank": None})
    return failed(run_dir, error, config=config)


def failed(run_dir: RunDir, error: ErrorReport, *, config: RunConfig | None = None) -> Outcome:
    """Write error.json, with the last lines of the log of the rank at fault, or of the launcher where there is none.

    `config` says which of this node's logs a rank's is. A disk that is full must not hide the error: the outcome
    carries it to whoever started us.
    """
    if error.log_tail is None:
        log = run_dir.log(error.rank - _rank(config, 0)) if config and error.rank is not None else run_dir.launcher_log
        error = error.model_copy(update={"log_tail": log_tail(log)})
    try:
        error.write(run_dir.error)
    except OSError as unwritten:
        return Outcome(error=error, disk_is_full=os_error_cause(unwritten) is Cause.DISK_FULL)
    return Outcome(error=error)


def _passed_the_last_barrier(run_dir: RunDir, config: RunConfig) -> bool:
    """Whether rank 0 has written its completion record, as a node can tell that has none.

    A rank says that it has finished behind the barrier that all ranks enter when their work is done, which is after the
    record for rank 0. What may still go wrong then, in the teardown, is of no consequence.
    """
    each = [run_dir.read_progress(local_rank) for local_rank in _local_ranks(config)]
    return all(reached is not None and reached.phase == "finished" for reached in each)


def _first_failure(run_dir: RunDir, config: RunConfig, ended: Mapping[int, RankEnd]) -> ErrorReport | None:
    """Return the report of the rank at fault: the first by time; one that merely lost its peers, last.

    A rank without its device comes first: it says so to the others, which then refuse to run by themselves.
    """
    each = (_report(run_dir, config, local_rank, ended.get(local_rank)) for local_rank in _local_ranks(config))
    reports = [report for report in each if report is not None]

    def order(report: ErrorReport) -> tuple[bool, bool, datetime]:
        return report.cause is Cause.COMMUNICATION, report.exception != _MISSING_DEVICE, report.time

    return min(reports, key=order, default=None)


def _report(run_dir: RunDir, config: RunConfig, local_rank: int, end: RankEnd | None) -> ErrorReport | None:
    if report := run_dir.read_rank_error(local_rank):
        return _as_known_here(report, config, end)
    if end is None or not end.is_failure:
        return None
    rank = _rank(config, local_rank)
    if end.status < 0:
        return _killed(run_dir.log(local_rank), rank, end)
    if end.status in (0, EXIT_INTERRUPTED):
        return _early_end(rank, end, f"code in it called os._exit() or the like; its log is {run_dir.log(local_rank)}")
    if end.status == EXIT_DISK_FULL:
        cause, why = Cause.DISK_FULL, "no space was left on the disk, not even to say more"
    else:
        cause, why = Cause.EXCEPTION, f"see {run_dir.log(local_rank)}"
    message = f"rank {rank} ended with exit status {end.status}: {why}"
    return ErrorReport(cause=cause, message=message, time=end.seen, rank=rank, exit_code=end.status)


def _as_known_here(report: ErrorReport, config: RunConfig, end: RankEnd | None) -> ErrorReport:
    """Return a rank's own report with what it could not know."""
    if report.exception == _MISSING_DEVICE and config.job_id is not None:
        # The service has seen the device when it handed it out: it is not the job that names one that never was.
        return report.model_copy(update={"cause": Cause.DEVICE})
    if report.cause is Cause.KILLED_BY_SIGNAL and end is not None and end.oom_kill is not None:  # a loader process
        message = f"{report.message.rstrip('. ')}; {_NO_MEMORY[end.oom_kill]}"
        return report.model_copy(update={"cause": _oom_cause(end.oom_kill), "message": message, "oom_kill": True})
    return report


def _oom_cause(kill: OomKill) -> Cause:
    """Return a cause that is final only where it is certain to come again: a neighbour's run may be gone by then."""
    return Cause.OUT_OF_MEMORY if kill is OomKill.OWN else Cause.KILLED_BY_SIGNAL


def _killed(log: Path, rank: int, end: RankEnd) -> ErrorReport:
    """Describe the end of a rank by a signal, which the rank itself had no time to."""
    name = signal_name(-end.status)
    cause, why = Cause.KILLED_BY_SIGNAL, ""
    oom_kill = end.oom_kill if name == "SIGKILL" else None
    if oom_kill is not None:
        cause, why = _oom_cause(oom_kill), f": {_NO_MEMORY[oom_kill]}"
    elif name == "SIGKILL":
        why = " (from outside: by hand, or by what else looks after this host)"
    elif name == "SIGABRT":
        said = log_tail(log) or ""
        cause = abort_cause(said) or cause
        why = f" (its log says why{f': {way}' if (way := advice(said)) else ''})"
    message = f"rank {rank} was ended by {name}{why}"
    return ErrorReport(
        cause=cause, message=message, time=end.seen, rank=rank, signal=name, oom_kill=oom_kill is not None
    )


def _early_end(rank: int, end: RankEnd, why: str) -> ErrorReport:
    message = f"rank {rank} ended (exit status {end.status}) before the run was complete: {why}"
    return ErrorReport(cause=Cause.EXCEPTION, message=message, time=end.seen, rank=rank, exit_code=end.status)


def _follows_a_stop(error: ErrorReport, config: RunConfig) -> bool:
    """Whether that is how ranks end that were asked to: a script's end in whatever way its author has chosen."""
    return config.train.recipe == SCRIPT or error.cause in (Cause.COMMUNICATION, Cause.KILLED_BY_SIGNAL)


def _is_ours(error: ErrorReport) -> bool:
    """Whether it is an exception of this package, which says itself what to do."""
    return (error.exception or "").startswith("trainer.")


def _interruption(run_dir: RunDir, config: RunConfig, reason: str) -> ErrorReport:
    if config.node_rank > 0:
        at = "; the checkpoints are node 0's"
    else:
        saved = run_dir.last_checkpoint()
        at = f"; the last checkpoint is {saved.path}" if saved else "; no checkpoint had been saved"
    return ErrorReport(cause=Cause.INTERRUPTED, message=f"{reason}{at}", time=datetime.now(UTC))


def _local_ranks(config: RunConfig) -> range:
    return range(config.local_world_size)


def _rank(config: RunConfig, local_rank: int) -> int:
    return config.node_rank * config.local_world_size + local_rank
