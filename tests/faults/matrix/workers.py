"""Faults of a host's worker."""

from tests.faults.matrix.fault import Fault
from tests.faults.matrix.trial import Trial


def kill_worker(trial: Trial) -> None:
    """The run goes on under its supervisor, or waits for the next worker; it costs no attempt."""
    job_id = trial.submit()
    trial.pause(trial.length_s)
    worker = trial.lane.worker("alpha")
    worker.kill()
    worker.wait()
    trial.struck()
    trial.lane.worker("alpha")
    trial.meanwhile.callback(trial.assert_went_on, job_id)


FAULTS = (Fault("kill -9 of the worker", kill_worker),)
