"""Faults of ranks: one is killed or stands still, or somebody unknown to the service tells some to stop."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from jobs.states import State
from jobs.store import verbs
from jobs.tables import Placement
from tests.faults.matrix.fault import Fault, Missed
from tests.faults.matrix.trial import Trial
from tests.waiting import wait_until
from trainer.process_identity import identity, is_alive
from worker.processes import marked_processes, signal_process

HANG_LIMIT_S = 5
"""For which a rank of a trial may be without progress: longer than a busy machine keeps one waiting."""

SLOW_PACE_S = 0.2
"""Of a program's steps, so that it still goes on when it is known to have begun."""


def kill_rank(trial: Trial) -> None:
    """A random one of them, as soon as there are ranks."""
    job_id = trial.submit()
    wait_for_ranks(trial, job_id, count=2)
    trial.pause(trial.remaining_s)
    _signal(trial, job_id, signal.SIGKILL, everyone=False)
    trial.struck()


def stop_rank(trial: Trial) -> None:
    """A random one of them, once a step has been told of; the stopped rank has to die of it.

    Not before: until its first word a rank may be ten minutes without progress, by design, however small the limit.
    """
    job_id = trial.submit(hang_limit_s=HANG_LIMIT_S, pace_s=SLOW_PACE_S)
    trial.service.wait_for_step(job_id, 1)
    trial.pause(trial.remaining_s)
    stopped_at_s = time.monotonic()
    (stopped,) = _signal(trial, job_id, signal.SIGSTOP, everyone=False)
    wait_until(lambda: not is_alive(stopped), timeout_s=120, what=lambda: f"its death; {trial.service.story(job_id)}")
    trial.struck(at_s=stopped_at_s)  # the other rank of a program, which waits for nobody, has gone on until now


def terminate_ranks(trial: Trial) -> None:
    """All of them, or one: whoever it was, no user asked for it, so the job is tried again.

    Ranks of a recipe save first. A program that does not listen is ended by it.
    """
    job_id = trial.submit()
    wait_for_ranks(trial, job_id, count=2)
    trial.pause(trial.remaining_s)
    _signal(trial, job_id, signal.SIGTERM, everyone=trial.draws.random() < 0.5)
    trial.struck()


def interrupt_ranks(trial: Trial) -> None:
    """All of them, or one. A recipe takes it as it does SIGTERM.

    To a program it is an exception in its midst, and what it raises is its own fault (docs/own-code.md): the job has
    failed, says so, and goes on to the same end once its user asks for another try.
    """
    job_id = trial.submit()
    wait_for_ranks(trial, job_id, count=2)
    trial.pause(trial.remaining_s)
    _signal(trial, job_id, signal.SIGINT, everyone=trial.draws.random() < 0.5)
    trial.struck()
    if trial.is_ddp:
        return
    job = trial.service.wait_for(job_id, State.SUCCEEDED, State.FAILED)
    if job.state == State.FAILED:
        assert job.failure is not None
        assert job.failure["exception"] == "builtins.KeyboardInterrupt", job.failure
        with trial.service.database.session_scope() as session:
            verbs.retry(session, job_id)


def processes_of(placement: Placement) -> list[int]:
    """The launcher, the ranks and their children on one host."""
    return [process.pid for process in marked_processes() if process.run_dir == placement.run_dir]


def ranks_of(placement: Placement) -> list[str]:
    """The identities of the ranks on one host."""
    found = []
    for pid in processes_of(placement):
        with suppress(OSError):  # it has just ended
            if is_rank(pid):
                found.append(identity(pid))
    return found


def is_rank(pid: int) -> bool:
    """Whether a process is a rank: the leader of a process group, with a rank in its environment."""
    try:
        return b"\0LOCAL_RANK=" in b"\0" + Path(f"/proc/{pid}/environ").read_bytes() and os.getpgid(pid) == pid
    except OSError:
        return False  # it has just ended


def wait_for_ranks(trial: Trial, job_id: int, *, count: int) -> None:
    """Return once so many ranks of a job on one host are there. Raises Missed if it is over: one may be so quickly."""
    trial.service.wait_for_supervisor(job_id)
    wait_until(
        lambda: (
            len(ranks_of(trial.service.placement(job_id))) == count
            or State(trial.service.job(job_id).state).is_terminal
        ),
        timeout_s=60,
        what=lambda: f"{count} ranks; {trial.service.story(job_id)}",
    )
    trial.look()


def _signal(trial: Trial, job_id: int, number: signal.Signals, *, everyone: bool) -> list[str]:
    """Send a signal to all ranks or to a random one, and return the identities of those that it was sent to."""
    ranks = sorted(ranks_of(trial.service.placement(job_id)))
    if not ranks:
        raise Missed
    chosen = ranks if everyone else [trial.draws.choice(ranks)]
    for rank in chosen:
        signal_process(rank, number)
    return chosen


FAULTS = (
    Fault("kill -9 of a rank", kill_rank, attempts=2),
    Fault("SIGSTOP of a rank", stop_rank, attempts=2),
    Fault("SIGTERM to ranks", terminate_ranks, attempts=2),
    Fault("SIGINT to ranks", interrupt_ranks, attempts=2),
)
