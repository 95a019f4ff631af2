"""The hang report: which rank of a run that stands still is to blame, and where in its code it is."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from trainer.config import SCRIPT
from trainer.error_report import ErrorReport
from trainer.errors import Cause
from trainer.hang_watch import Standstill
from trainer.log_tail import log_tail
from trainer.run_dir import RunConfig, RunDir
from trainer.stack_dump import StackDump, dump_stacks, place, with_loaders

_PHASES = ("starting", "compiling", "training", "evaluating", "saving", "waiting")
"""In the order in which a rank comes to them at a step."""
_DEVICE_WAITS = ("in synchronize", "trainer/loss_watch.py")
"""In the newest frame: it waits for its device, which may be in a collective, or at work for too long."""
_DOING = {"starting": "while it started", "compiling": "while it compiled", "waiting": "while it waited for the others"}


def report_hang(
    run_dir: RunDir, config: RunConfig, still: Sequence[Standstill], pids: Mapping[int, int]
) -> tuple[ErrorReport, bool]:
    """Have all ranks of this node write their stacks into their logs, and say which of those that stand still hangs.

    `pids` are the processes of the ranks, by local rank. Also returns whether the fault may be another node's: all that
    stand still here are in a collective, in which they may wait for ranks of others.
    """
    tails = {each.local_rank: log_tail(run_dir.log(each.local_rank)) for each in still}
    dumps = dump_stacks({rank: (pid, run_dir.log(rank)) for rank, pid in pids.items()})
    hanging = min(still, key=lambda each: _by_blame(each, dumps[each.local_rank]))
    local_rank = hanging.local_rank
    dump = dumps[local_rank]
    if dump.is_in_loader:
        dump = with_loaders(dump, pids[local_rank], run_dir.log(local_rank))
    rank = config.node_rank * config.local_world_size + local_rank
    is_elsewhere = config.nnodes > 1 and _may_wait(dump)
    if is_elsewhere:
        message = (
            f"node {config.node_rank} has made no progress for {hanging.seconds:.0f} s "
            f"(hang_limit_s: {config.hang_limit_s:g}), and all of its ranks may be waiting for a rank of another node: "
            f"rank {rank} is in {_where(dump)}, after step {hanging.step}"
        )
    else:
        quiet = _quiet(hanging, is_script=config.train.recipe == SCRIPT)
        message = f"rank {rank} hangs: {quiet} (hang_limit_s: {config.hang_limit_s:g}); it {_state(dump)}"
    report = ErrorReport(
        cause=Cause.HANG,
        message=message,
        time=datetime.now(UTC),
        rank=None if is_elsewhere else rank,
        traceback=dump.text or None,
        log_tail=tails[local_rank] or "",  # of before the dump, which would have pushed it out
    )
    return report, is_elsewhere


def _quiet(still: Standstill, *, is_script: bool) -> str:
    """Say what has not come, and since when: of a script that is a report, which rank 0 makes for all."""
    if is_script and still.phase == "starting":
        return f"nothing has been reported yet, for {still.seconds:.0f} s"
    if is_script:
        return f"nothing was reported for {still.seconds:.0f} s, after step {still.step}"
    doing = _DOING.get(still.phase, f"in {still.phase}")
    return f"no progress for {still.seconds:.0f} s {doing}, after step {still.step}"


def _by_blame(rank: Standstill, dump: StackDump) -> tuple[int, int, int, float]:
    """What puts the rank that hangs before those that wait for it.

    What a rank is found at says more than how far it is: those that wait for each other are at the same step.
    """
    if dump.is_stopped or dump.is_in_kernel:
        evidence = 0
    elif not _may_wait(dump):
        evidence = 1
    else:
        evidence = 3 if dump.is_in_collective else 2
    return evidence, rank.step, _PHASES.index(rank.phase), -rank.seconds


def _may_wait(dump: StackDump) -> bool:
    """Whether it may be another rank that the process waits for."""
    if dump.is_stopped or dump.is_in_kernel or not dump.frames:
        return False
    return dump.is_in_collective or any(wait in dump.frames[0] for wait in _DEVICE_WAITS)


def _state(dump: StackDump) -> str:
    """Say what a process is at."""
    if dump.is_stopped:
        return f"is stopped, as by SIGSTOP, in {_where(dump)}" if dump.frames else "is stopped, as by SIGSTOP"
    if dump.is_in_kernel:
        return "waits in the kernel, where no signal reaches it: for a disk, a network share or a driver"
    if not dump.frames:
        return "does not answer by its stack"
    if dump.is_in_loader:
        return f"waits for its loader processes, in {_where(dump)}"
    collective = " (a collective, or a backward pass)" if dump.is_in_collective else ""
    return f"is in {_where(dump)}{collective}"


def _where(dump: StackDump) -> str:
    return place(dump.frames[0])
