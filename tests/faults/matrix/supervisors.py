"""Faults of a supervisor: it is killed at any moment of its life, or stands still for longer than its lease."""

import signal
import threading
import time
from pathlib import Path

from jobs.tables import Placement
from tests.faults.matrix.fault import Fault, Missed
from tests.faults.matrix.lane import LEASE_S, TICK_S
from tests.faults.matrix.ranks import processes_of
from tests.faults.matrix.trial import Trial
from tests.service import is_running
from tests.waiting import wait_until
from trainer.process_identity import identity, is_alive
from trainer.run_dir import RunDir
from worker.processes import marked_processes, signal_process

DEAF = "deaf"
"""A host whose worker was started with SIGINT ignored, as in the background of a script."""
STARTS_WITHIN_S = 0.5
"""Of a supervisor: less than its imports take until it claims its placement."""
LONG_PACE_S = 0.75
"""Of the program's steps, so that all of them take as long as two leases."""


def kill_supervisor(trial: Trial) -> None:
    """Its worker proves the ranks dead and tries again."""
    job_id = trial.submit()
    trial.service.wait_for_supervisor(job_id)
    trial.pause(trial.remaining_s)
    _kill(trial, job_id)


def kill_importing_supervisor(trial: Trial) -> None:
    """From its claim to its rank's first word: the rank imports torch, the launcher may not have started it yet."""
    job_id = trial.submit(ranks=1)
    trial.service.wait_for_supervisor(job_id)
    rank_says = RunDir(Path(trial.service.placement(job_id).run_dir)).progress(0)
    instant = time.monotonic() + trial.draw(trial.remaining_s)
    while time.monotonic() < instant and not rank_says.exists():
        time.sleep(0.01)
    trial.look()
    _kill(trial, job_id)


def kill_deaf_supervisor(trial: Trial) -> None:
    """Nothing in the tree hears SIGINT: what ends the ranks is a signal that nobody can ignore."""
    trial.lane.worker(DEAF, inside=("sh", "-c", "trap '' INT; exec \"$@\"", "sh"), tick_s=TICK_S)
    job_id = trial.submit({"count": 2, "host": DEAF})
    trial.service.wait_for_supervisor(job_id)
    trial.pause(trial.remaining_s)
    _kill(trial, job_id)


def stop_supervisor(trial: Trial) -> None:
    """For two leases, and then it goes on: its ranks are dead by then, or their run was complete and has counted.

    Two times the real lease, whatever the scale of outages. Recovery counts from the stop on.
    """
    job_id = trial.submit(pace_s=trial.draws.choice([LONG_PACE_S, 0.05]))
    trial.service.wait_for_supervisor(job_id)
    trial.pause(trial.remaining_s)
    supervisor = trial.service.placement(job_id).supervisor
    assert supervisor is not None
    signal_process(supervisor, signal.SIGSTOP)
    trial.standing.add(int(supervisor.partition(":")[0]))  # also if its run is over, but for its own last steps
    trial.struck()
    waking = threading.Timer(2 * LEASE_S, signal_process, [supervisor, signal.SIGCONT])
    waking.start()

    def wake() -> None:
        waking.join()
        wait_until(lambda: not is_alive(supervisor), timeout_s=10, what="the supervisor to leave once it goes on")

    trial.meanwhile.callback(wake)


def kill_starting_supervisor(trial: Trial) -> None:
    """Before its claim, once or twice in a row: its worker gives the placement up, and it costs the job no retry.

    After the second the host is closed, until it has tried for itself that supervisors can be started there.
    """
    job_id = trial.submit(ranks=1)
    for attempt in range(1, trial.draws.choice([1, 2]) + 1):
        _kill_before_claim(trial, job_id, attempt)

        def assert_given_up(number: int = attempt) -> None:
            failure = trial.service.attempts(job_id)[number - 1].failure
            assert failure is not None
            assert "before its claim" in failure["message"], failure

        trial.meanwhile.callback(assert_given_up)

    def assert_no_retry() -> None:
        assert trial.service.job(job_id).retries == 0, trial.service.story(job_id)

    trial.meanwhile.callback(assert_no_retry)


def _kill_before_claim(trial: Trial, job_id: int, attempt: int) -> None:
    """Kill the supervisor of an attempt at an instant of its start. Raises Missed if it has claimed its placement."""

    def placement() -> Placement | None:
        return next((each for each in trial.lane.placements(job_id) if each.attempt == attempt), None)

    wait_until(
        placement, timeout_s=60, what=lambda: f"attempt {attempt}; {trial.service.story(job_id)}", interval_s=0.02
    )
    ours = placement()
    assert ours is not None

    def starting() -> list[int]:
        return [each.pid for each in marked_processes() if each.supervisor_of == ours.run_dir]

    wait_until(starting, timeout_s=60, what=lambda: f"its supervisor; {trial.service.story(job_id)}", interval_s=0.02)
    (pid,) = starting()
    supervisor = identity(pid)
    time.sleep(trial.draw(STARTS_WITHIN_S))
    signal_process(supervisor, signal.SIGKILL)
    trial.struck()
    wait_until(lambda: not is_alive(supervisor), timeout_s=5, what="its death")
    current = placement()
    if current is not None and current.supervisor == supervisor:
        raise Missed


def kill_with_ranks(trial: Trial, placement: Placement) -> None:
    """Kill the supervisor of a placement; its ranks die with it, before anybody looks for them."""
    assert placement.supervisor is not None
    pids = processes_of(placement)
    signal_process(placement.supervisor, signal.SIGKILL)
    trial.struck()
    wait_until(lambda: not any(map(is_running, pids)), timeout_s=5, what="the ranks to die with their supervisor")


def _kill(trial: Trial, job_id: int) -> None:
    """Kill the supervisor of the job's newest attempt, which goes on where it was, as far as the database knew."""
    placement = trial.service.placement(job_id)
    saved = max((each.step for each in trial.service.checkpoints(job_id)), default=0)
    kill_with_ranks(trial, placement)

    def assert_goes_on_where_it_was() -> None:
        for attempt in trial.service.attempts(job_id)[placement.attempt :]:
            assert (attempt.resumed_step or 0) >= saved, trial.service.story(job_id)

    trial.meanwhile.callback(assert_goes_on_where_it_was)


FAULTS = (
    Fault("kill -9 of the supervisor", kill_supervisor, attempts=2),
    Fault("kill -9 of the supervisor between its start and its claim", kill_starting_supervisor, attempts=3),
    Fault("kill -9 of the supervisor while its rank imports torch", kill_importing_supervisor, attempts=2, ddp_every=1),
    Fault("kill -9 of the supervisor, SIGINT ignored", kill_deaf_supervisor, attempts=2),
    Fault("SIGSTOP of the supervisor for two leases, then SIGCONT", stop_supervisor, attempts=2, outlasts_lease=True),
)
