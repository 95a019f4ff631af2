"""Faults of a supervisor: it is killed at any moment of its life, or stands still for longer than its lease."""

import signal
import threading
import time
from pathlib import Path

from tests.faults.matrix.fault import Fault
from tests.faults.matrix.lane import LEASE_S, TICK_S
from tests.faults.matrix.ranks import processes_of
from tests.faults.matrix.trial import Trial
from tests.service import is_running
from tests.waiting import wait_until
from trainer.process_identity import is_alive
from trainer.run_dir import RunDir
from worker.processes import signal_process

DEAF = "deaf"
"""A host whose worker was started with SIGINT ignored, as in the background of a script."""
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
    trial.struck()
    waking = threading.Timer(2 * LEASE_S, signal_process, [supervisor, signal.SIGCONT])
    waking.start()

    def wake() -> None:
        waking.join()
        wait_until(lambda: not is_alive(supervisor), timeout_s=10, what="the supervisor to leave once it goes on")

    trial.meanwhile.callback(wake)


def _kill(trial: Trial, job_id: int) -> None:
    """Kill the supervisor of the job's newest attempt; its ranks die with it, before anybody looks for them."""
    placement = trial.service.placement(job_id)
    assert placement.supervisor is not None
    pids = processes_of(placement)
    saved = max((each.step for each in trial.service.checkpoints(job_id)), default=0)
    signal_process(placement.supervisor, signal.SIGKILL)
    trial.struck()
    wait_until(lambda: not any(map(is_running, pids)), timeout_s=5, what="the ranks to die with their supervisor")

    def assert_goes_on_where_it_was() -> None:
        for attempt in trial.service.attempts(job_id)[placement.attempt :]:
            assert (attempt.resumed_step or 0) >= saved, trial.service.story(job_id)

    trial.meanwhile.callback(assert_goes_on_where_it_was)


FAULTS = (
    Fault("kill -9 of the supervisor", kill_supervisor),
    Fault("kill -9 of the supervisor while its rank imports torch", kill_importing_supervisor, ddp_every=1),
    Fault("kill -9 of the supervisor, SIGINT ignored", kill_deaf_supervisor),
    Fault("SIGSTOP of the supervisor for two leases, then SIGCONT", stop_supervisor),
)
