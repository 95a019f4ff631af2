"""Faults of processes: the worker, a supervisor or a rank is killed, stopped or interrupted."""

import os
import signal

from tests.faults.matrix.fault import Fault
from tests.faults.matrix.trial import Trial


def kill_worker(trial: Trial) -> None:
    """The run goes on under its supervisor, or waits for the next worker."""
    trial.submit()
    trial.pause(trial.length_s)
    worker = trial.lane.worker("alpha")
    worker.kill()
    worker.wait()
    trial.struck()
    trial.lane.worker("alpha")


def kill_supervisor(trial: Trial) -> None:
    """Its worker proves the ranks dead and tries again."""
    job_id = trial.submit()
    trial.service.wait_for_supervisor(job_id)
    trial.pause(trial.length_s)
    os.kill(trial.service.supervisor_pid(job_id), signal.SIGKILL)
    trial.struck()


FAULTS = (
    Fault("kill -9 of the worker", kill_worker),
    Fault("kill -9 of the supervisor", kill_supervisor, ddp_every=2),
)
