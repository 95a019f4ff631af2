"""The checkpoint of another job that a job starts from: which one, and what is said where it is not there."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import select

from jobs.changes import Clone
from jobs.errors import InvalidSpecError, StateConflictError
from jobs.spec import JobSpec
from jobs.states import Intent, Outcome
from jobs.store import checkpoints, jobs, reports, verbs
from jobs.store.jobs import Submission
from jobs.store.reports import CheckpointFile
from jobs.tables import Checkpoint, Placement
from tests.integration.store.conftest import Service
from tests.integration.store.turns import wait_for_blocked


def save(
    service: Service,
    placement: Placement,
    step: int,
    *,
    folder: str = "/runs",
    best: bool = False,
    removed: tuple[int, ...] = (),
) -> int:
    """Report a checkpoint of this step, and those that it replaces by theirs; return its id."""
    file = CheckpointFile(
        path=f"{folder}/{step}.pt",
        step=step,
        epoch=1,
        sha256="0" * 64,
        size_bytes=1,
        best=best,
        values={},
        at=datetime.now(UTC),
        removed=[f"{folder}/{earlier}.pt" for earlier in removed],
    )
    with service.database.session_scope() as session:
        reports.add_checkpoint(session, placement, file)
        mine = (Checkpoint.job_id == placement.job_id, Checkpoint.step == step)
        return session.scalars(select(Checkpoint.id).where(*mine)).one()


def start_from(service: Service, **start: Any) -> Submission:
    spec = {"device": "0", "train": {"model": "mlp", "data": "digits"}, "start_from": start}
    with service.database.session_scope() as session:
        return jobs.submit(session, JobSpec.model_validate(spec))


def test_weights_are_those_of_the_best_checkpoint_and_a_resume_is_from_the_last(service: Service) -> None:
    placement = service.run()
    best, last = save(service, placement, 10, best=True), save(service, placement, 20)
    service.end(placement, Outcome.SUCCEEDED)

    for mode, expected in (("weights", best), ("resume", last)):
        job = start_from(service, job=placement.job_id, mode=mode).job
        assert (job.parent_id, job.parent_checkpoint_id) == (placement.job_id, expected)
        assert job.spec["start_from"] == {"job": placement.job_id, "checkpoint": expected, "mode": mode}


def test_a_later_save_does_not_change_what_a_submitted_job_starts_from(service: Service) -> None:
    placement = service.run()
    first = save(service, placement, 10, best=True)
    job_id = start_from(service, job=placement.job_id).job.id

    save(service, placement, 20, best=True)

    assert service.job(job_id).parent_checkpoint_id == first
    with service.database.session_scope() as session:
        # A clone of it starts where it did.
        assert verbs.clone(session, job_id, Clone()).job.parent_checkpoint_id == first


def test_weights_of_a_job_that_never_said_which_is_best_are_the_last(service: Service) -> None:
    placement = service.run()
    save(service, placement, 10)
    last = save(service, placement, 20)

    assert start_from(service, job=placement.job_id).job.parent_checkpoint_id == last


def test_a_clone_starts_from_the_job_it_is_a_copy_of_unless_another_is_named(service: Service) -> None:
    placement, other = service.run("0"), service.run("1")
    mine, its = save(service, placement, 10), save(service, other, 10)

    for start, expected in (({"mode": "resume"}, mine), ({"job": other.job_id}, its)):
        with service.database.session_scope() as session:
            wanted = Clone.model_validate({"start_from": start})
            job = verbs.clone(session, placement.job_id, wanted).job
        assert (job.parent_id, job.parent_checkpoint_id) == (placement.job_id, expected)


def test_what_cannot_be_started_from_is_refused_by_the_field_with_what_there_is(service: Service) -> None:
    placement, other, empty = service.run("0"), service.run("1"), service.submit("1")
    gone = save(service, placement, 10)
    save(service, placement, 20, best=True)
    kept = save(service, placement, 30, removed=(10,))
    foreign = save(service, other, 10)

    refusals: list[tuple[dict[str, int], str, str]] = [
        ({"job": 99}, "start_from.job", "no job 99"),
        ({"job": empty}, "start_from.job", f"job {empty} has no checkpoint to start from"),
        (
            {"job": placement.job_id, "checkpoint": gone},
            "start_from.checkpoint",
            f"checkpoint {gone} was removed .*; there is {kept} \\(step 30\\), {gone + 1} \\(step 20, best\\)",
        ),
        (
            {"job": placement.job_id, "checkpoint": foreign},
            "start_from.checkpoint",
            f"has no checkpoint {foreign}; there",
        ),
        ({"job": placement.job_id, "checkpoint": 2**62}, "start_from.checkpoint", "has no checkpoint"),
    ]
    before = service.everything()
    for start, field, said in refusals:
        with pytest.raises(InvalidSpecError, match=said) as refused:
            start_from(service, **start)
        assert refused.value.field == field
    assert service.everything() == before


def test_a_submitter_is_warned_of_a_file_that_its_job_may_yet_let_go_of(service: Service) -> None:
    placement = service.run("1")
    last = save(service, placement, 10)

    (warning,) = start_from(service, job=placement.job_id, mode="resume").warnings
    assert f"checkpoint {last} (step 10) may be gone" in warning

    service.end(placement, Outcome.SUCCEEDED)
    assert start_from(service, job=placement.job_id, mode="resume").warnings == ()


def test_a_checkpoint_is_not_removed_while_a_clone_that_starts_from_it_is_stored(postgres_service: Service) -> None:
    service, database = postgres_service, postgres_service.database
    placement = service.run()
    origin = save(service, placement, 10, folder=placement.run_dir)
    service.end(placement, Outcome.SUCCEEDED)
    first = start_from(service, job=placement.job_id).job.id
    with database.session_scope() as session:
        jobs.set_intent(session, first, Intent.CANCEL)

    def remove() -> None:
        with database.session_scope() as session:
            checkpoints.remove(session, placement.job_id, origin)

    with ThreadPoolExecutor(1) as other:
        with database.session_scope() as session:
            clone = verbs.clone(session, first, Clone()).job  # of the first, which is its parent: no key leads further
            removing = other.submit(remove)
            wait_for_blocked(database)
        with pytest.raises(StateConflictError, match=f"job {clone.id} starts from it"):
            removing.result()

    with database.session_scope(read_only=True) as session:
        assert session.get_one(Checkpoint, origin).removed_at is None


def test_a_job_that_starts_from_what_is_being_removed_is_refused(postgres_service: Service) -> None:
    service, database = postgres_service, postgres_service.database
    placement = service.run()
    origin = save(service, placement, 10, folder=placement.run_dir)
    service.end(placement, Outcome.SUCCEEDED)

    with ThreadPoolExecutor(1) as other:
        with database.session_scope() as session:
            checkpoints.remove(session, placement.job_id, origin)
            submitting = other.submit(start_from, service, job=placement.job_id)
            wait_for_blocked(database)
        with pytest.raises(InvalidSpecError, match=f"checkpoint {origin} was removed just now"):
            submitting.result()
