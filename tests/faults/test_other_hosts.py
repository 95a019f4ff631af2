"""Jobs that go on on another host: from an object store or a shared folder; without either they wait for their own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.states import Intent, State
from jobs.store import maintenance
from tests.object_store import ROOT, ObjectStore
from tests.service import Service
from tests.waiting import wait_until
from trainer.run_dir import RunDir

pytestmark = pytest.mark.timeout(240)  # six runs, some of them side by side

PACE_S = 0.2
"""A step takes so long that a job is far from its end when it is paused."""


@pytest.fixture(autouse=True)
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    """An object store that every worker and supervisor finds by its environment."""
    with ObjectStore() as store:
        for variable, value in store.variables.items():
            monkeypatch.setenv(variable, value)
        yield store


def pause_one(service: Service, checkpoint_root: str | None) -> int:
    """Bring a job to where it is paused in the middle of its training, and return its id."""
    job_id = service.submit_program({"count": 1}, pace_s=PACE_S, checkpoint_root=checkpoint_root)
    service.wait_for_checkpoint(job_id)
    service.set_intent(job_id, Intent.PAUSE)
    service.wait_for(job_id, State.PAUSED)
    return job_id


def test_a_paused_job_goes_on_on_another_host_where_its_checkpoint_can_be_read_and_else_waits_for_its_own(
    service: Service, tmp_path: Path
) -> None:
    service.start_worker("alpha")
    undisturbed = service.submit_program({"count": 1})
    service.wait_for(undisturbed, State.SUCCEEDED)
    roots = {"store": ROOT, "folder": str(tmp_path / "shared"), "nowhere": None}
    paused = {name: pause_one(service, root) for name, root in roots.items()}

    # The hosts of a test are one machine: without this, beta would find the files of alpha where alpha has them.
    run_root, elsewhere = service.folder / "alpha", service.folder / "elsewhere"
    run_root.rename(elsewhere)
    service.start_worker("beta")
    with service.database.session_scope() as session:
        maintenance.drain(session, "alpha")
    for job_id in paused.values():
        service.set_intent(job_id, Intent.RUN)

    for name, place in (("store", "/resume/step-"), ("folder", f"{tmp_path}/shared/job-")):
        service.wait_for(paused[name], State.SUCCEEDED)
        assert service.placement(paused[name]).host_name == "beta"
        assert service.attempts(paused[name])[-1].resumed_step
        assert place in str(RunDir(Path(service.placement(paused[name]).run_dir)).read_config().resume)
        service.assert_same_series(paused[name], undisturbed)
    wait_until(
        lambda: "is on alpha only" in str(service.job(paused["nowhere"]).reason),
        timeout_s=30,
        what=lambda: f"the job to wait for alpha; {service.story(paused['nowhere'])}",
    )
    assert service.job(paused["nowhere"]).attempt == 1
    brought = Path(service.placement(paused["store"]).run_dir) / "resume"
    assert not brought.exists()
    service.set_intent(paused["nowhere"], Intent.CANCEL)
    elsewhere.rename(run_root)
    service.assert_laws_held(undisturbed, *paused.values())
