"""Attempts: claimed once, kept by renewals, ended once, and what the end means for job and devices."""

import threading
from typing import Any

import pytest
from sqlalchemy.orm import Session

from jobs.errors import StaleAttemptError
from jobs.settings import get_settings
from jobs.states import Intent, Outcome, State
from jobs.store import attempts, endings, jobs, leases
from jobs.store.leases import Orders, Renewal
from jobs.tables import Placement
from tests.integration.store.conftest import WORKER, Service
from tests.integration.store.turns import in_threads, wait_for_blocked

FAILURE = {"cause": "killed_by_signal", "message": "rank 1 was ended by SIGKILL", "rank": 1}
FAULT = {"cause": "exception", "message": "ValueError: no such thing", "rank": 1}


def want(service: Service, job_id: int, intent: Intent) -> None:
    with service.database.session_scope() as session:
        jobs.set_intent(session, job_id, intent)


def end(session: Session, placement: Placement) -> None:
    endings.end_placement(session, placement, completed=False, failure=FAILURE)


def renew(service: Service, placement: Placement) -> Renewal:
    with service.database.session_scope() as session:
        return leases.renew(session, placement)


def test_a_claim_names_the_supervisor_and_starts_the_heartbeat(service: Service) -> None:
    placement = service.claim(service.launch(), "77:123@boot")

    assert placement.supervisor == "77:123@boot"
    assert placement.claimed_at is not None
    assert placement.heartbeat_at is not None


def test_a_placement_is_claimed_only_once(service: Service) -> None:
    placement = service.launch()
    service.claim(placement, "1:1")

    with pytest.raises(StaleAttemptError, match="is taken"):
        service.claim(placement, "2:2")

    with service.database.session_scope(read_only=True) as session:
        assert attempts.get_placement(session, placement.id).supervisor == "1:1"


def test_of_supervisors_that_claim_at_the_same_time_one_wins(service: Service) -> None:
    placement = service.launch()
    together = threading.Barrier(6)
    won: list[str] = []
    refused: list[StaleAttemptError] = []

    def work() -> None:
        name = f"{threading.get_ident()}:1"
        together.wait()
        try:
            service.claim(placement, name)
        except StaleAttemptError as error:
            refused.append(error)
        else:
            won.append(name)

    in_threads(6, work)

    assert (len(won), len(refused)) == (1, 5)


def test_a_renewal_extends_every_lease_of_the_placement_and_tells_the_intent(service: Service) -> None:
    placement = service.run("0,1")
    before = [lease.expires_at for lease in service.leases(placement)]
    want(service, placement.job_id, Intent.PAUSE)

    renewal = renew(service, placement)

    after = [lease.expires_at for lease in service.leases(placement)]
    assert renewal == Renewal(Orders(Intent.PAUSE), get_settings().lease_s)
    assert all(new > old for new, old in zip(after, before, strict=True))
    assert len(set(after)) == 1


def test_a_renewal_leaves_the_leases_of_other_attempts_alone(service: Service) -> None:
    mine, other = service.run("0"), service.run("1")
    before = [lease.expires_at for lease in service.leases(other)]

    renew(service, mine)

    assert [lease.expires_at for lease in service.leases(other)] == before


def test_the_first_record_of_a_run_makes_the_job_running(service: Service) -> None:
    placement = service.run()

    job = service.job(placement.job_id)
    (attempt,) = service.attempts(job.id)
    assert job.state == "running"
    assert job.started_at == attempt.started_at is not None
    assert service.moves(job.id) == [("queued", "starting"), ("starting", "running")]


def test_a_second_first_record_changes_nothing(service: Service) -> None:
    placement = service.run()
    before = service.everything()

    with service.database.session_scope() as session:
        attempts.set_running(session, placement, resumed_step=40)

    assert service.everything() == before


@pytest.mark.parametrize(
    ("outcome", "state"),
    [
        (Outcome.SUCCEEDED, "succeeded"),
        (Outcome.FAILED, "failed"),
        (Outcome.CANCELLED, "cancelled"),
        (Outcome.PAUSED, "paused"),
        (Outcome.LOST, "queued"),
    ],
)
def test_the_end_of_an_attempt_frees_its_devices_and_moves_its_job(
    service: Service, outcome: Outcome, state: str
) -> None:
    placement = service.run("0,1")
    if outcome is Outcome.PAUSED:
        want(service, placement.job_id, Intent.PAUSE)

    assert service.end(placement, outcome) == state

    (attempt,) = service.attempts(placement.job_id)
    assert (attempt.outcome, service.state(placement.job_id)) == (outcome, state)
    assert service.live_leases() == []
    with service.database.session_scope(read_only=True) as session:
        assert attempts.open_placements(session, "alpha", worker=WORKER) == []
        assert attempts.get_placement(session, placement.id).ended_at == attempt.ended_at is not None
    assert (service.job(placement.job_id).finished_at is not None) == State(state).is_terminal


def test_the_end_of_an_attempt_leaves_other_attempts_alone(service: Service) -> None:
    mine, other = service.run("0"), service.run("1")

    service.end(mine, Outcome.SUCCEEDED)

    assert service.live_leases() == [("cuda:1", other.job_id, 1)]
    assert service.state(other.job_id) == "running"


def test_a_lost_attempt_is_tried_again_until_the_budget_is_spent(service: Service) -> None:
    placement = service.run("0", max_retries=2)
    states = [service.end(placement, Outcome.LOST, failure=FAILURE)]
    for _ in range(2):
        (placement,) = service.plan()
        states.append(service.end(placement, Outcome.LOST, failure=FAILURE))

    job = service.job(placement.job_id)
    assert states == ["queued", "queued", "failed"]
    assert (job.retries, job.attempt, job.failure) == (2, 3, FAILURE)
    assert [attempt.outcome for attempt in service.attempts(job.id)] == ["lost", "lost", "lost"]
    assert service.plan() == []


def test_a_job_with_no_retries_fails_with_its_first_lost_attempt(service: Service) -> None:
    assert service.end(service.run(max_retries=0), Outcome.LOST) == "failed"


def test_a_failed_attempt_is_not_tried_again_whatever_the_budget(service: Service) -> None:
    placement = service.run("0", max_retries=5)

    assert service.end(placement, Outcome.FAILED, failure=FAULT) == "failed"

    assert service.job(placement.job_id).retries == 0
    assert service.plan() == []


@pytest.mark.parametrize(("intent", "state"), [(Intent.CANCEL, "cancelled"), (Intent.PAUSE, "paused")])
def test_an_attempt_lost_while_its_user_wants_it_to_stop_is_not_tried_again(
    service: Service, intent: Intent, state: str
) -> None:
    placement = service.run()
    want(service, placement.job_id, intent)

    assert service.end(placement, Outcome.LOST) == state
    assert service.job(placement.job_id).retries == 0


@pytest.mark.parametrize(("intent", "state"), [(Intent.CANCEL, "cancelled"), (Intent.RUN, "queued")])
def test_a_pause_that_the_user_took_back_while_the_run_stopped_does_not_hold(
    service: Service, intent: Intent, state: str
) -> None:
    placement = service.run()
    want(service, placement.job_id, Intent.PAUSE)
    want(service, placement.job_id, intent)

    assert service.end(placement, Outcome.PAUSED) == state
    assert service.state(placement.job_id) == state
    assert service.live_leases() == []


def test_an_attempt_stopped_in_order_spends_no_retry(service: Service) -> None:
    placement = service.run(max_retries=0)

    with service.database.session_scope() as session:
        endings.end_placement(session, placement, completed=False, failure=FAILURE, spends_retry=False)

    assert service.state(placement.job_id) == "queued"
    assert service.job(placement.job_id).retries == 0


def test_a_job_that_succeeds_in_the_end_shows_no_failure(service: Service) -> None:
    placement = service.run()
    service.end(placement, Outcome.LOST, failure=FAILURE)
    (again,) = service.plan()
    service.claim(again)
    with service.database.session_scope() as session:
        attempts.set_running(session, again, resumed_step=40)

    service.end(again, Outcome.SUCCEEDED)

    assert service.job(placement.job_id).failure is None
    assert [attempt.failure for attempt in service.attempts(placement.job_id)] == [FAILURE, None]
    assert [attempt.resumed_step for attempt in service.attempts(placement.job_id)] == [None, 40]


@pytest.mark.parametrize(("intent", "state"), [(Intent.CANCEL, "cancelled"), (Intent.PAUSE, "paused")])
def test_an_intent_written_while_an_attempt_is_being_lost_is_not_forgotten(
    postgres_service: Service, intent: Intent, state: str
) -> None:
    service, database = postgres_service, postgres_service.database
    placement = service.run()

    with database.session_scope() as session:
        jobs.set_intent(session, placement.job_id, intent)
        ending = threading.Thread(target=service.end, args=(placement, Outcome.LOST))
        ending.start()
        wait_for_blocked(database)
    ending.join()

    assert service.state(placement.job_id) == state


def test_the_same_intent_written_just_after_the_end_is_followed_at_once(postgres_service: Service) -> None:
    service, database = postgres_service, postgres_service.database
    placement = service.run()

    with database.session_scope() as session:
        end(session, placement)
        cancelling = threading.Thread(target=want, args=(service, placement.job_id, Intent.CANCEL))
        cancelling.start()
        wait_for_blocked(database)
    cancelling.join()

    assert service.state(placement.job_id) == "cancelled"


def test_an_attempt_ends_only_once(service: Service) -> None:
    placement = service.run()
    service.end(placement, Outcome.SUCCEEDED)
    before = service.everything()

    with pytest.raises(StaleAttemptError):
        service.end(placement, Outcome.LOST, failure=FAILURE)

    assert service.everything() == before


def test_of_those_who_end_an_attempt_at_the_same_time_one_does(service: Service) -> None:
    placement = service.run()
    together = threading.Barrier(4)
    ended: list[State] = []
    refused: list[StaleAttemptError] = []

    def work() -> None:
        together.wait()
        try:
            ended.append(service.end(placement, Outcome.LOST))
        except StaleAttemptError as error:
            refused.append(error)

    in_threads(4, work)

    assert (len(ended), len(refused)) == (1, 3)
    assert service.job(placement.job_id).retries == 1


def test_a_claim_and_the_end_of_the_same_attempt_do_not_lock_each_other_out(postgres_service: Service) -> None:
    service, database = postgres_service, postgres_service.database
    placement = service.launch()
    errors: list[BaseException] = []

    def claim() -> None:
        try:
            service.claim(placement)
        except BaseException as error:  # noqa: BLE001  # looked at by the test's own thread
            errors.append(error)

    with database.session_scope() as session:
        attempts.fence(session, placement)  # has the attempt's row, as the end has first
        claiming = threading.Thread(target=claim)
        claiming.start()
        wait_for_blocked(database)
        end(session, placement)
    claiming.join()

    assert [type(error) for error in errors] == [StaleAttemptError]


def test_what_an_attempt_failed_of_stays_with_it_and_is_told_by_an_event(service: Service) -> None:
    placement = service.run()

    service.end(placement, Outcome.FAILED, failure=FAULT)

    (attempt,) = service.attempts(placement.job_id)
    event = service.events(placement.job_id)[-1]
    assert attempt.failure == FAULT
    assert event.detail == {"outcome": "failed"} | FAULT


@pytest.mark.parametrize("message", ["a\x00b", "lone \ud800 surrogate", "🚀 100% 'quoted' \"twice\""])
def test_a_failure_may_hold_any_text(service: Service, message: str) -> None:
    placement = service.run()

    service.end(placement, Outcome.FAILED, failure=FAULT | {"message": message})

    stored: Any = service.job(placement.job_id).failure
    stored["message"].encode()  # what cannot be encoded cannot be answered either
    assert stored["rank"] == 1
