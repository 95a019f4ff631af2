"""How attempts on several hosts end: placement by placement, with one conclusion by the last of them."""

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from jobs.errors import StaleAttemptError
from jobs.planner.view import Preempt
from jobs.states import Intent, Outcome, StopOrder
from jobs.store import attempts, jobs, leases
from jobs.store.endings import Conclusion
from jobs.store.leases import Orders
from jobs.tables import Host, Placement, Usage
from tests.integration.endings import end_as
from tests.integration.store.conftest import Service
from tests.integration.store.ends import KILLED, LOST_PEERS, end, order_stop, set_limits
from tests.integration.store.turns import in_threads


@pytest.fixture
def service(service: Service) -> Service:
    service.register("beta")
    return service


def orders(service: Service, placement: Placement) -> Orders:
    with service.database.session_scope(read_only=True) as session:
        return leases.read_orders(session, placement)


def test_a_placement_that_ends_frees_its_own_devices_and_tells_the_others_to_stop(service: Service) -> None:
    first, second = service.run_on("alpha", "beta")

    assert end(service, second, failure=KILLED) is None

    assert [lease.released_at is None for lease in service.leases(first)] == [True, False]
    assert service.state(first.job_id) == "running"
    assert orders(service, first) == Orders(Intent.RUN, StopOrder.PEER_ENDED, "node 1 (beta) has ended")
    (attempt,) = service.attempts(first.job_id)
    assert attempt.ended_at is None


def test_a_placement_that_has_ended_writes_nothing_more_though_its_attempt_goes_on(service: Service) -> None:
    _, second = service.run_on("alpha", "beta")
    end(service, second, failure=KILLED)
    before = service.everything()

    with pytest.raises(StaleAttemptError, match="on node 1"), service.database.session_scope() as session:
        attempts.note(session, second, "log", {"message": "late"})
    with pytest.raises(StaleAttemptError), service.database.session_scope() as session:
        leases.renew(session, second)
    with pytest.raises(StaleAttemptError):
        orders(service, second)

    assert service.everything() == before


def test_a_supervisor_renews_the_leases_of_its_own_placement_only(service: Service) -> None:
    first, second = service.run_on("alpha", "beta")
    before = {lease.placement_id: lease.expires_at for lease in service.leases(first)}

    with service.database.session_scope() as session:
        leases.renew(session, second)

    after = {lease.placement_id: lease.expires_at for lease in service.leases(first)}
    assert after[first.id] == before[first.id]
    assert after[second.id] > before[second.id]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["node 0 first", "node 1 first"])
def test_the_last_placement_to_end_concludes_by_the_failure_that_came_first(
    service: Service, order: tuple[int, int]
) -> None:
    placements = service.run_on("alpha", "beta")
    failures = {0: LOST_PEERS, 1: KILLED}

    concluded = [end(service, placements[index], failure=failures[index]) for index in order]

    assert concluded == [None, Conclusion(Outcome.LOST, service.job(placements[0].job_id).state)]  # type: ignore[arg-type]  # a column
    (attempt,) = service.attempts(placements[0].job_id)
    assert (attempt.outcome, attempt.failure) == ("lost", KILLED)
    assert service.job(placements[0].job_id).retries == 1
    assert service.live_leases() == []


@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["node 0 first", "node 1 first"])
def test_an_attempt_has_succeeded_if_node_0_has_the_completion_record(service: Service, order: tuple[int, int]) -> None:
    placements = service.run_on("alpha", "beta")
    how: dict[int, dict[str, Any]] = {0: {"completed": True}, 1: {"failure": LOST_PEERS}}

    for index in order:
        end(service, placements[index], **how[index])

    (attempt,) = service.attempts(placements[0].job_id)
    assert (attempt.outcome, attempt.failure) == ("succeeded", None)


def test_an_attempt_without_node_0s_completion_record_has_not_succeeded(service: Service) -> None:
    first, second = service.run_on("alpha", "beta")
    end(service, second, completed=True)

    conclusion = end(service, first, failure=KILLED)

    assert conclusion is not None
    assert conclusion.outcome is Outcome.LOST


def test_of_placements_that_end_at_once_exactly_one_concludes(service: Service) -> None:
    for name in ("gamma", "delta"):
        service.register(name)
    placements = service.run_on("alpha", "beta", "delta", "gamma", device="0,1", user="ada")
    together = threading.Barrier(4)
    waiting = list(placements)
    concluded: list[Conclusion | None] = []
    errors: list[BaseException] = []

    def work() -> None:
        placement = waiting.pop()
        together.wait()
        try:
            concluded.append(end(service, placement, failure=LOST_PEERS))
        except BaseException as error:  # noqa: BLE001  # looked at by the test's own thread
            errors.append(error)

    in_threads(4, work)

    assert errors == []
    assert sorted(each is None for each in concluded) == [False, True, True, True]
    assert service.job(placements[0].job_id).retries == 1
    assert service.live_leases() == []


@pytest.mark.parametrize("_", range(3))
def test_an_end_and_an_expiry_of_the_same_placement_end_it_once(service: Service, _: int) -> None:
    first, second = service.run_on("alpha", "beta", max_retries=0)
    service.run_out(second)
    together = threading.Barrier(2)
    works: list[Callable[[], bool]] = [
        lambda: service.expire_one(second),
        lambda: end(service, second, failure=KILLED) is None,
    ]
    ended: list[bool] = []

    def work() -> None:
        mine = works.pop()
        together.wait()
        try:
            ended.append(mine())
        except StaleAttemptError:
            ended.append(False)

    in_threads(2, work)

    assert sorted(ended) == [False, True]
    end(service, first, failure=LOST_PEERS)
    assert service.state(first.job_id) == "failed"


def test_a_host_whose_lease_ran_out_ends_its_placement_only(service: Service) -> None:
    first, second = service.run_on("alpha", "beta")
    service.run_out(second)

    assert service.expire() == [second.id]

    assert orders(service, first).stop is StopOrder.PEER_ENDED
    end(service, first, failure=LOST_PEERS)
    failure = service.job(first.job_id).failure
    assert failure is not None
    assert (failure["cause"], failure["message"]) == ("lost", "its lease ran out: no word from its supervisor on beta")


@pytest.mark.parametrize("order", [StopOrder.PREEMPTED, StopOrder.DRAINED])
def test_an_attempt_that_was_told_to_stop_is_queued_again_at_its_old_place_and_spends_no_retry(
    service: Service, order: StopOrder
) -> None:
    (placement,) = service.run_on("alpha", max_retries=0)
    waits_from = service.job(placement.job_id).waits_from
    assert order_stop(service, placement, order)

    assert service.end(placement, Outcome.PREEMPTED) == "queued"

    job = service.job(placement.job_id)
    assert (job.retries, job.not_before, job.waits_from, job.failure) == (0, None, waits_from, None)
    assert [attempt.outcome for attempt in service.attempts(job.id)] == ["preempted"]


def test_a_preemption_is_told_to_the_supervisor_and_among_the_events(service: Service) -> None:
    (placement,) = service.run_on("alpha", preemptible=True)

    with service.database.session_scope() as session:
        attempts.preempt(session, Preempt(placement.job_id, placement.attempt, for_job=77))

    assert orders(service, placement) == Orders(Intent.RUN, StopOrder.PREEMPTED, "preempted by job 77")
    assert service.events(placement.job_id)[-1].detail["message"] == "preempted by job 77"


def test_an_attempt_is_told_to_stop_once_and_not_after_its_end(service: Service) -> None:
    (placement,) = service.run_on("alpha")
    assert order_stop(service, placement, StopOrder.DRAINED)

    assert not order_stop(service, placement, StopOrder.PREEMPTED)
    assert orders(service, placement).stop is StopOrder.DRAINED
    service.end(placement, Outcome.PREEMPTED)
    assert not order_stop(service, placement, StopOrder.PREEMPTED)


def test_peers_of_a_placement_that_was_told_to_save_keep_that_order(service: Service) -> None:
    first, second = service.run_on("alpha", "beta")
    order_stop(service, first, StopOrder.PREEMPTED)

    end_as(service.database, second, Outcome.PREEMPTED)

    assert orders(service, first).stop is StopOrder.PREEMPTED


@pytest.mark.parametrize(("intent", "state"), [(Intent.CANCEL, "cancelled"), (Intent.PAUSE, "paused")])
def test_what_the_user_wants_of_a_preempted_attempt_comes_first(service: Service, intent: Intent, state: str) -> None:
    (placement,) = service.run_on("alpha")
    order_stop(service, placement, StopOrder.PREEMPTED)
    with service.database.session_scope() as session:
        jobs.set_intent(session, placement.job_id, intent)

    assert service.end(placement, Outcome.PREEMPTED) == state


def test_a_job_that_reached_its_time_limit_has_failed(service: Service) -> None:
    (placement,) = service.run_on("alpha", max_retries=3)

    assert service.end(placement, Outcome.FAILED, failure={"cause": "time_limit", "message": "60 s"}) == "failed"


def test_the_time_that_a_job_has_trained_is_that_of_all_its_attempts_that_have_ended(service: Service) -> None:
    (placement,) = service.run_on("alpha")
    for seconds in (30, 12):
        service.trains_since(placement, seconds=seconds)
        service.end(placement, Outcome.LOST)
        (placement,) = [service.claim(each) for each in service.plan()]
        with service.database.session_scope() as session:
            attempts.set_running(session, placement, resumed_step=None)
    service.trains_since(placement, seconds=1000)

    with service.database.session_scope(read_only=True) as session:
        assert attempts.trained_s(session, placement.job_id) == pytest.approx(42, abs=5)


def test_a_job_rests_longer_after_each_loss_and_not_at_all_once_it_starts(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_limits(monkeypatch, retry_backoff_s=10, retry_backoff_max_s=25)
    (placement,) = service.run_on("alpha", max_retries=9)
    rests = []
    for number in (1, 2, 3):
        service.end(placement, Outcome.LOST)
        job = service.job(placement.job_id)
        ended_at = service.attempts(job.id)[-1].ended_at
        assert ended_at is not None
        assert job.not_before is not None
        rests.append(job.not_before - ended_at)
        service.rest_is_over(job.id)
        (placement,) = service.plan()
        assert (placement.attempt, service.job(job.id).not_before) == (number + 1, None)
    assert rests == [timedelta(seconds=10), timedelta(seconds=20), timedelta(seconds=25)]


def test_an_attempt_that_was_stopped_in_order_costs_its_job_no_rest(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_limits(monkeypatch, retry_backoff_s=10)
    (placement,) = service.run_on("alpha")

    end(service, placement, failure={"cause": "interrupted", "message": "its host is going down"}, spends_retry=False)

    job = service.job(placement.job_id)
    assert (job.state, job.retries, job.not_before) == ("queued", 0, None)


@pytest.mark.parametrize("cause", ["disk_full", "lost"])
def test_a_run_that_its_host_could_not_begin_rests_though_it_spends_no_retry(
    service: Service, cause: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a host that is told to be sound, and is not, could be given the same job without end."""
    set_limits(monkeypatch, retry_backoff_s=10)
    (placement,) = service.run_on("alpha", max_retries=0)

    end(service, placement, failure={"cause": cause, "message": "it could not be begun"}, spends_retry=False)

    job, (attempt,) = service.job(placement.job_id), service.attempts(placement.job_id)
    assert (job.state, job.retries) == ("queued", 0)
    assert attempt.ended_at is not None
    assert job.not_before == attempt.ended_at + timedelta(seconds=10)
    assert service.plan() == []


def test_a_host_that_goes_down_in_order_costs_a_job_on_two_hosts_no_retry(service: Service) -> None:
    first, second = service.run_on("alpha", "beta")
    going_down = {"cause": "interrupted", "message": "its host is going down"}
    end(service, first, failure={"cause": "interrupted", "message": "a rank was asked to stop"})

    end(service, second, failure=going_down, spends_retry=False)

    job = service.job(first.job_id)
    assert (job.state, job.retries) == ("queued", 0)
    assert job.failure == going_down


def test_what_a_placement_held_is_added_to_its_users_use_as_it_ends(service: Service) -> None:
    first, second = service.run_on("alpha", "beta", user="ada")
    service.held_since(first, seconds=100)
    service.held_since(second, seconds=50)

    end(service, first, completed=True)
    with service.database.session_scope(read_only=True) as session:
        after_one = session.get_one(Usage, ("user", "ada")).device_s
    end(service, second, completed=True)

    with service.database.session_scope(read_only=True) as session:
        after_both = session.get_one(Usage, ("user", "ada")).device_s
    assert [after_one, after_both] == pytest.approx([100, 150], rel=0.05)


def test_node_0_of_each_attempt_on_several_hosts_has_a_port_of_its_host_to_itself(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_limits(monkeypatch, rendezvous_ports="29300-29300")  # those of the host of whoever plans
    with service.database.session_scope() as session:
        session.get_one(Host, "alpha").rendezvous_ports = "29400-29401"
    first, second = (service.run_on("alpha", "beta", device=device) for device in ("0", "1"))
    ports = [placement.master_port for placement in (*first, *second)]
    assert sorted(port for port in ports if port is not None) == [29400, 29401]
    assert [port is None for port in ports] == [False, True, False, True]

    third = service.submit("cpu", nodes=2)
    assert service.plan() == []
    assert service.job(third).reason == "every rendezvous port of alpha is in use"
    end(service, first[0], completed=True)
    assert [placement.master_port for placement in service.plan()] == [first[0].master_port, None]
