"""What a user may do with a job that is there, in the store: pause, resume, retry, change and clone it."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from pydantic import ValidationError
from sqlalchemy.orm import Session

from jobs.changes import Clone, JobChanges
from jobs.errors import InvalidChangesError, InvalidSpecError, NotFoundError, StateConflictError
from jobs.states import Intent, Outcome, State
from jobs.store import attempts, jobs, search, verbs
from jobs.store.jobs import Submission
from jobs.tables import Job, Placement
from tests.integration.store.conftest import Service

Verb = Callable[[Session, int], Job]
FAILURE = {"cause": "exception", "message": "ValueError: no", "rank": 0}


def do(service: Service, verb: Verb, job_id: int) -> Job:
    with service.database.session_scope() as session:
        return verb(session, job_id)


def cancel(session: Session, job_id: int) -> Job:
    return jobs.set_intent(session, job_id, Intent.CANCEL)


def change(service: Service, job_id: int, **changes: Any) -> Job:
    with service.database.session_scope() as session:
        return verbs.change(session, job_id, JobChanges.model_validate(changes))


def clone(service: Service, job_id: int, **wanted: Any) -> Submission:
    with service.database.session_scope() as session:
        return verbs.clone(session, job_id, Clone.model_validate(wanted))


def write(service: Service, job_id: int, **columns: Any) -> None:
    """Put values into columns, as if they had come to be so."""
    with service.database.session_scope() as session:
        for name, value in columns.items():
            setattr(session.get_one(Job, job_id), name, value)


def failed(service: Service, device: str = "0", **failure: Any) -> int:
    placement = service.run(device)
    service.end(placement, Outcome.FAILED, failure=FAILURE | failure)
    return placement.job_id


ORDER = (*(state for state in State if state is not State.QUEUED), State.QUEUED)
"""Every state; a job that waits is made last, for a plan would start it."""


def one_in_each_state(service: Service) -> dict[State, int]:
    """The ids of jobs, one in each state."""
    service.register("large", cuda=8)
    return {state: _in_state(service, state) for state in ORDER}


def _in_state(service: Service, state: State) -> int:
    if state in (State.QUEUED, State.PAUSED):
        job_id = service.submit()
        if state is State.PAUSED:
            do(service, verbs.pause, job_id)
        return job_id
    placement = service.claim(service.launch({"count": 1, "host": "large"}))
    if state is not State.STARTING:
        with service.database.session_scope() as session:
            attempts.set_running(session, placement, resumed_step=None)
    if state.is_terminal:
        service.end(placement, Outcome(state.value), failure=FAILURE if state is State.FAILED else None)
    assert service.state(placement.job_id) == state
    return placement.job_id


# pause and resume


def test_a_paused_job_comes_back_at_the_end_of_its_line_and_rests_no_longer(service: Service) -> None:
    job_id = service.submit()
    submitted = service.job(job_id).waits_from
    write(service, job_id, not_before=submitted, retries=1)
    do(service, verbs.pause, job_id)

    job = do(service, verbs.resume, job_id)

    assert (job.state, job.intent, job.not_before, job.retries) == ("queued", "run", None, 1)
    assert job.waits_from > submitted


def test_what_is_so_already_is_returned_as_it_is(service: Service) -> None:
    ids = one_in_each_state(service)
    before = service.everything()

    assert do(service, verbs.pause, ids[State.PAUSED]).state == "paused"
    for state in (State.QUEUED, State.STARTING, State.RUNNING):
        assert do(service, verbs.resume, ids[state]).state == state

    assert service.everything() == before


def test_a_job_that_is_paused_while_it_starts_is_paused_once_its_attempt_has_ended(service: Service) -> None:
    placement = service.claim(service.launch())

    assert do(service, verbs.pause, placement.job_id).state == "starting"

    assert service.end(placement, Outcome.PAUSED) == "paused"
    assert service.live_leases() == []


def test_a_pause_and_a_plan_at_once_leave_a_job_that_is_paused_or_is_to_be(service: Service) -> None:
    for _ in range(5):
        job_id = service.submit()
        meet = threading.Barrier(2)

        def planned(meet: threading.Barrier = meet) -> list[Placement]:
            meet.wait()
            return service.plan()

        def paused(job_id: int = job_id, meet: threading.Barrier = meet) -> str:
            meet.wait()
            return do(service, verbs.pause, job_id).state

        with ThreadPoolExecutor(2) as pool:
            placements, state = pool.submit(planned), pool.submit(paused)

        job = service.job(job_id)
        assert job.intent == "pause"
        assert (state.result(), job.state) in {("paused", "paused"), ("starting", "starting")}
        assert len(placements.result()) == len(service.live_leases()) == (job.state == "starting")
        for placement in placements.result():
            service.end(placement, Outcome.PAUSED)
        assert service.state(job_id) == "paused"


def test_a_job_that_is_resumed_while_it_still_stops_is_queued_as_soon_as_it_has_and_spends_no_retry(
    service: Service,
) -> None:
    placement = service.run()
    do(service, verbs.pause, placement.job_id)
    assert do(service, verbs.resume, placement.job_id).state == "running"

    assert service.end(placement, Outcome.PAUSED) == "queued"

    job = service.job(placement.job_id)
    assert (job.intent, job.retries, job.not_before) == ("run", 0, None)
    assert [each.job_id for each in service.plan()] == [placement.job_id]


def test_what_is_over_can_be_neither_paused_nor_resumed(service: Service) -> None:
    ids = one_in_each_state(service)
    before = service.everything()

    way_out = {State.SUCCEEDED: "clone it", State.FAILED: "retry it", State.CANCELLED: "clone it"}
    for state, said in way_out.items():
        for verb in (verbs.pause, verbs.resume):
            with pytest.raises(StateConflictError, match=f"job {ids[state]} .*{said}"):
                do(service, verb, ids[state])

    assert service.everything() == before


def test_a_job_that_is_to_be_cancelled_takes_no_other_verb(service: Service) -> None:
    placement = service.run()
    do(service, cancel, placement.job_id)

    for verb in (verbs.pause, verbs.resume, verbs.retry):
        with pytest.raises(StateConflictError, match="cancelled, which is final"):
            do(service, verb, placement.job_id)

    assert service.job(placement.job_id).intent == "cancel"


def test_a_job_that_leaves_the_line_keeps_no_place_in_it(service: Service) -> None:
    job_id = service.submit()
    at = service.job(job_id).created_at
    write(service, job_id, predicted_start=at, waits_for=[{"job_id": 1}], reservation={"device_ids": [1]})

    job = do(service, verbs.pause, job_id)

    assert (job.predicted_start, job.waits_for, job.reservation) == (None, None, None)


# retry


def test_a_failed_job_is_queued_again_with_all_its_retries_and_goes_on_counting_its_attempts(service: Service) -> None:
    job_id = failed(service)
    before = service.job(job_id)
    write(service, job_id, retries=3, intent="pause", not_before=before.created_at)

    job = do(service, verbs.retry, job_id)

    assert (job.state, job.intent, job.retries, job.not_before, job.finished_at) == ("queued", "run", 0, None, None)
    assert job.waits_from > before.waits_from
    assert job.failure == before.failure
    assert [event.kind for event in service.events(job_id)][-2:] == ["retry", "state"]
    assert [(each.job_id, each.attempt) for each in service.plan()] == [(job_id, 2)]


def test_a_retried_job_can_be_cancelled(service: Service) -> None:
    job_id = failed(service)
    do(service, verbs.retry, job_id)

    assert do(service, cancel, job_id).state == "cancelled"
    assert service.job(job_id).finished_at is not None


def test_only_a_failed_job_is_retried(service: Service) -> None:
    ids = one_in_each_state(service)
    before = service.everything()

    said = {
        State.QUEUED: "waits in the line already",
        State.STARTING: "is starting",
        State.RUNNING: "is running",
        State.PAUSED: "is paused; resume it",
        State.SUCCEEDED: "has succeeded; clone it",
        State.CANCELLED: "was cancelled, which is final; clone it",
    }
    for state in State:
        if state is not State.FAILED:
            with pytest.raises(StateConflictError, match=said[state]):
                do(service, verbs.retry, ids[state])

    assert service.everything() == before


def test_a_job_that_has_spent_its_time_limit_is_not_retried_only_to_fail_at_once(service: Service) -> None:
    job_id = failed(service, cause="time_limit")

    with pytest.raises(StateConflictError, match="clone it with another time_limit_s"):
        do(service, verbs.retry, job_id)


def test_a_retry_and_a_cancel_at_once_leave_one_of_the_two_and_no_third(service: Service) -> None:
    for _ in range(5):
        job_id = failed(service)
        meet = threading.Barrier(3)

        def at_once(verb: Verb, job_id: int = job_id, meet: threading.Barrier = meet) -> str:
            meet.wait()
            try:
                return do(service, verb, job_id).state
            except StateConflictError:
                return "refused"

        with ThreadPoolExecutor(3) as pool:
            retried, again, cancelled = pool.map(at_once, (verbs.retry, verbs.retry, cancel))

        # Cancelled before it was retried, it had failed, and a cancel of what is over changes nothing.
        assert "queued" in (retried, again)
        assert (retried, again).count("refused") == 1
        moves = service.moves(job_id)[3:]
        assert moves == [("failed", "queued"), ("queued", "cancelled")][: 2 if cancelled == "cancelled" else 1]
        do(service, cancel, job_id)


# change


def test_priority_and_labels_are_changed_in_any_state(service: Service) -> None:
    for state, job_id in one_in_each_state(service).items():
        job = change(service, job_id, priority=90, labels={"team": "vision"})

        assert (job.priority, job.labels, job.state) == (90, {"team": "vision"}, state)
        assert job.spec["priority"] == 50
        event = service.events(job_id)[-1]
        assert event.kind == "change"
        assert event.detail == {
            "priority": {"from": 50, "to": 90},
            "labels": {"from": {}, "to": {"team": "vision"}},
        }


def test_a_waiting_job_of_new_priority_is_the_next_to_start(service: Service) -> None:
    first, second = service.submit("0"), service.submit("0")
    change(service, second, priority=51)

    assert [placement.job_id for placement in service.plan()] == [second]
    assert service.state(first) == "queued"


def test_labels_that_are_not_named_stay_and_null_takes_one_away(service: Service) -> None:
    job_id = service.submit(labels={"team": "vision", "a": "1"})

    assert change(service, job_id, labels={"a": None, "b": "2", "absent": None}).labels == {"team": "vision", "b": "2"}


def test_a_change_that_changes_nothing_is_no_event(service: Service) -> None:
    job_id = service.submit()
    before = service.everything()

    nothing: list[dict[str, Any]] = [{}, {"priority": 50}, {"labels": {}}, {"labels": {"absent": None}}]
    for changes in nothing:
        change(service, job_id, **changes)

    assert service.everything() == before


def test_more_labels_than_a_job_may_have_are_refused(service: Service) -> None:
    job_id = service.submit(labels={f"a{index}": "" for index in range(40)})

    with pytest.raises(InvalidSpecError, match="80 labels; a job may have 64"):
        change(service, job_id, labels={f"b{index}": "" for index in range(40)})


def test_labels_that_two_users_set_at_once_are_both_there(service: Service) -> None:
    job_id = service.submit()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda index: change(service, job_id, labels={f"of-{index}": "x"}), range(4)))

    assert service.job(job_id).labels == {f"of-{index}": "x" for index in range(4)}


# clone


def test_a_job_in_any_state_is_cloned_as_a_new_one(service: Service) -> None:
    for job_id in one_in_each_state(service).values():
        change(service, job_id, priority=70, labels={"team": "vision"})

        job = clone(service, job_id).job

        assert (job.state, job.attempt, job.parent_id, job.parent_checkpoint_id) == ("queued", 0, job_id, None)
        assert (job.priority, job.labels) == (70, {"team": "vision"})
        assert job.spec == service.job(job_id).spec | {"priority": 70, "labels": {"team": "vision"}}


def test_changes_are_merged_into_the_spec_and_null_takes_a_field_out(service: Service) -> None:
    job_id = service.submit("0,1", name="first", user="ann", train={"model": "mlp", "data": "digits", "lr": 0.5})

    job = clone(service, job_id, changes={"device": "0", "name": None, "train": {"lr": None, "epochs": 3}}).job

    assert (job.name, job.user, job.spec["device"]) == ("mlp", "ann", "cuda:0")
    assert (job.spec["train"]["epochs"], job.spec["train"]["lr"]) == (3, 0.1)


def test_changes_that_make_no_valid_spec_name_each_field(service: Service) -> None:
    job_id = service.submit("0,1")

    with pytest.raises(InvalidChangesError, match=f"job {job_id}'s spec") as refused:
        clone(service, job_id, changes={"train": {"epochs": 0, "lr": -1}, "devise": "0"})

    assert isinstance(refused.value.__cause__, ValidationError)
    wrong = {error["loc"] for error in refused.value.__cause__.errors()}
    assert wrong == {("train", "epochs"), ("train", "lr"), ("devise",)}
    assert len(service.everything()["jobs"]) == 1


def test_a_spec_of_another_release_is_cloned_once_what_this_one_does_not_know_is_taken_out(service: Service) -> None:
    job_id = service.submit()
    spec = service.job(job_id).spec
    older = {name: value for name, value in spec.items() if name not in ("nodes", "user", "start_from")}
    write(service, job_id, spec=older | {"train": spec["train"] | {"momentun": 1}})

    with pytest.raises(InvalidChangesError) as refused:
        clone(service, job_id)
    assert "momentun" in str(refused.value.__cause__)

    assert clone(service, job_id, changes={"train": {"momentun": None}}).job.spec == spec


def test_changes_that_are_nested_too_deep_are_refused(service: Service) -> None:
    job_id = service.submit()
    deep: dict[str, Any] = {}
    for _ in range(2000):
        deep = {"a": deep}

    with pytest.raises(InvalidSpecError, match="nested too deep"):
        clone(service, job_id, changes={"train": {"options": deep}})


def test_the_jobs_that_came_of_one_are_found_by_it_and_those_of_a_user_by_name(service: Service) -> None:
    job_id = service.submit(user="ann")
    mine = [clone(service, job_id, changes={"user": user}).job.id for user in ("ann", "bob")]

    with service.database.session_scope(read_only=True) as session:
        found = [job.id for job in session.scalars(search.select_jobs(parent_id=job_id))]
        of_ann = [job.id for job in session.scalars(search.select_jobs(user="ann"))]

    assert found == mine[::-1]
    assert of_ann == [mine[0], job_id]


def test_a_verb_on_an_unknown_job_names_it(service: Service) -> None:
    for verb in (verbs.pause, verbs.resume, verbs.retry):
        for job_id in (0, 2**70):
            with pytest.raises(NotFoundError, match=f"no job {job_id}"):
                do(service, verb, job_id)
