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

    def assert_one_attempt() -> None:
        assert trial.service.job(job_id).attempt == 1, trial.service.story(job_id)

    trial.meanwhile.callback(assert_one_attempt)


FAULTS = (Fault("kill -9 of the worker", kill_worker),)
