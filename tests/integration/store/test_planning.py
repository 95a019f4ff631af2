"""One round of planning against a real database: attempts and leases appear together, and never two on a device."""

import threading
from typing import Any

import pytest
from sqlalchemy import event, select
from sqlalchemy.exc import IntegrityError

from jobs.database import now
from jobs.planning import plan_once
from jobs.settings import get_settings
from jobs.states import Intent, Outcome
from jobs.store import attempts, hosts, jobs, leases
from jobs.tables import DeviceRow, Lease, Placement
from tests.integration.store.conftest import WORKER, Service
from tests.integration.store.statements import executed
from tests.integration.store.turns import in_threads, wait_for_blocked


def test_a_planned_job_is_starting_with_an_attempt_a_placement_and_a_lease_on_each_device(service: Service) -> None:
    placement = service.launch("1,0")

    job = service.job(placement.job_id)
    (attempt,) = service.attempts(job.id)
    assert (job.state, job.attempt, job.reason) == ("starting", 1, None)
    assert (attempt.number, attempt.world_size, attempt.outcome) == (1, 2, None)
    assert (placement.host_name, placement.node_rank, placement.devices) == ("alpha", 0, ["cuda:1", "cuda:0"])
    assert placement.run_dir.startswith(f"/runs/alpha/job-{job.id}/attempt-1-")
    assert sorted(service.live_leases()) == [("cuda:0", job.id, 1), ("cuda:1", job.id, 1)]
    assert service.moves(job.id) == [("queued", "starting")]


def test_a_job_of_one_rank_for_all_its_devices_leases_each_of_them(service: Service) -> None:
    placement = service.launch("0,1", train={"model": "resnet18", "data": "digits", "strategy": "dp"})

    (attempt,) = service.attempts(placement.job_id)
    assert attempt.world_size == 1
    assert sorted(service.live_leases()) == [("cuda:0", placement.job_id, 1), ("cuda:1", placement.job_id, 1)]


def test_a_new_lease_holds_as_long_as_the_settings_say(service: Service) -> None:
    (lease,) = service.leases(service.launch("0"))

    assert (lease.expires_at - lease.acquired_at).total_seconds() == get_settings().lease_s


def test_two_attempts_never_share_a_run_directory(service: Service) -> None:
    first = service.run("0")
    service.end(first, Outcome.LOST)
    (second,) = service.plan()

    assert second.attempt == 2
    assert first.run_dir != second.run_dir


def test_devices_come_back_in_rank_order(service: Service) -> None:
    placement = service.launch("1,0")

    with service.database.session_scope(read_only=True) as session:
        assert [row.name for row in attempts.device_rows(session, placement)] == ["cuda:1", "cuda:0"]


def test_jobs_on_disjoint_devices_start_together_and_overlapping_ones_wait(service: Service) -> None:
    first, second, third = service.submit("0"), service.submit("1"), service.submit("0,1")

    assert [placement.job_id for placement in service.plan()] == [first, second]
    assert service.job(third).state == "queued"
    assert service.job(third).reason == (
        f"waits for cuda:0 (job {first}), cuda:1 (job {second}) on alpha; how long job {first} runs is not known"
    )


def test_planning_again_changes_nothing(service: Service) -> None:
    service.launch("0")
    service.submit("0")
    service.plan()
    before = service.everything()

    assert service.plan() == []

    assert service.everything() == before


def test_a_silent_host_gets_no_job_and_the_job_says_so(service: Service) -> None:
    service.fall_silent("alpha")
    job_id = service.submit("0")

    assert service.plan() == []
    assert service.job(job_id).reason == "every host with cuda:0 is out of contact"


def test_a_host_that_is_heard_of_again_gets_jobs_again(service: Service) -> None:
    service.fall_silent("alpha")
    job_id = service.submit("0")
    service.plan()

    with service.database.session_scope() as session:
        hosts.beat(session, "alpha", worker=WORKER)

    assert [placement.job_id for placement in service.plan()] == [job_id]


def test_a_device_that_is_gone_after_a_restart_of_its_worker_is_given_to_nobody(service: Service) -> None:
    service.register("alpha", cuda=1)
    job_id = service.submit("1")

    assert service.plan() == []
    assert service.job(job_id).reason == "no registered host has cuda:1"


def test_a_worker_that_registers_again_keeps_the_leases_of_its_running_jobs(service: Service) -> None:
    placement = service.run("0")

    service.register("alpha")
    service.submit("0")

    assert service.plan() == []
    assert service.live_leases() == [("cuda:0", placement.job_id, 1)]


def test_a_second_live_lease_on_a_device_cannot_be_stored(service: Service) -> None:
    first, second = service.launch("0"), service.launch("1")

    def lease_again() -> None:
        with service.database.session_scope() as session:
            device = session.scalars(select(DeviceRow).where(DeviceRow.name == "cuda:0")).one()
            at = now(session)
            session.add(Lease(device_id=device.id, job_id=second.job_id, attempt=1, acquired_at=at, expires_at=at))

    with pytest.raises(IntegrityError):
        lease_again()

    assert sorted(service.live_leases()) == [("cuda:0", first.job_id, 1), ("cuda:1", second.job_id, 1)]


def test_a_device_is_leased_again_once_its_lease_is_released_and_the_history_stays(service: Service) -> None:
    first = service.run("0")
    second = service.submit("0")
    service.end(first, Outcome.SUCCEEDED)

    (placement,) = service.plan()

    assert placement.job_id == second
    with service.database.session_scope(read_only=True) as session:
        held = [(lease.job_id, lease.released_at is None) for _, _, lease, _ in hosts.lease_history(session)]
    assert held == [(first.job_id, False), (second, True)]


def test_planners_that_plan_at_the_same_time_book_each_device_once(service: Service) -> None:
    planners = 4
    for name in ("beta", "gamma"):
        service.register(name)
    submitted = [service.submit(device) for device in ["0", "1", "0,1", "cpu", {"count": 2}, "1"] * 4]
    together = threading.Barrier(planners)
    launched: list[list[Placement]] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            together.wait()
            for _ in range(5):
                launched.append(service.plan())
        except BaseException as error:  # noqa: BLE001  # raised again by the test's own thread
            errors.append(error)

    in_threads(planners, work)

    assert errors == []
    started = [placement.job_id for placements in launched for placement in placements]
    assert len(started) == len(set(started)) > 0
    assert set(started) <= set(submitted)
    leased = [
        (lease.device_id, lease.job_id) for placement in all_placements(service) for lease in service.leases(placement)
    ]
    assert (
        len({device for device, _ in leased})
        == len(leased)
        == sum(len(placement.devices) for placement in all_placements(service))
    )


def test_a_job_cancelled_while_a_planner_is_about_to_start_it_is_not_started(postgres_service: Service) -> None:
    service, database = postgres_service, postgres_service.database
    job_id = service.submit("0")
    other = service.submit("1")
    launched: list[Placement] = []

    with database.session_scope() as session:
        jobs.set_intent(session, job_id, Intent.CANCEL)
        planner = threading.Thread(target=lambda: launched.extend(service.plan()))
        planner.start()
        wait_for_blocked(database)
    planner.join()

    assert [placement.job_id for placement in launched] == [other]
    assert service.state(job_id) == "cancelled"
    assert service.live_leases() == [("cuda:1", other, 1)]


def test_a_planner_does_not_wait_for_a_transaction_of_another_job(postgres_service: Service) -> None:
    service, database = postgres_service, postgres_service.database
    running = service.run("0")
    job_id = service.submit("1")

    with database.session_scope() as session:
        leases.renew(session, running)
        assert [placement.job_id for placement in service.plan()] == [job_id]


@pytest.mark.parametrize(
    "stored",
    [
        {},
        {"device": "cuda:0"},
        {"device": {"from_the_future": True}, "nproc_per_node": None},
        {"device": ["cuda:0"], "nproc_per_node": None},
        {"device": "cpu", "nproc_per_node": "many"},
        {"device": None, "nproc_per_node": None},
    ],
    ids=repr,
)
def test_a_job_whose_spec_this_version_cannot_read_does_not_keep_the_others_waiting(
    service: Service, stored: dict[str, Any]
) -> None:
    unreadable, other = service.submit("0"), service.submit("1")
    with service.database.session_scope() as session:
        job = jobs.get(session, unreadable)
        job.spec, job.request = stored, None

    assert [placement.job_id for placement in service.plan()] == [other]
    assert "cannot be read" in str(service.job(unreadable).reason)


def test_a_round_takes_no_more_statements_for_more_jobs_that_this_version_cannot_read(service: Service) -> None:
    def statements_of_a_round() -> int:
        with executed(service.database) as statements:
            service.plan()
        return len(statements)

    newer = {"device": {"from_the_future": True}, "nproc_per_node": None}
    counts = []
    for count in (1, 20):
        submitted = [service.submit() for _ in range(count)]
        with service.database.session_scope() as session:
            for job_id in submitted:
                job = jobs.get(session, job_id)
                job.spec, job.request = newer, '{"from_the_future": true}'
        service.plan()  # says of each that it cannot be read
        counts.append(statements_of_a_round())

    assert counts[0] == counts[1]


def test_a_request_that_can_be_read_beside_a_spec_that_cannot_holds_others_up_for_one_round(service: Service) -> None:
    unreadable, same, other = service.submit("0"), service.submit("0"), service.submit("1")
    with service.database.session_scope() as session:
        jobs.get(session, unreadable).spec = {"from_the_future": True}

    assert [placement.job_id for placement in service.plan()] == [other]
    assert [placement.job_id for placement in service.plan()] == [same]
    assert "cannot be read" in str(service.job(unreadable).reason)


def test_a_reason_that_is_no_news_is_not_written_again(service: Service) -> None:
    service.run("0,1")
    for device in ("0", "1", "0,1", "7"):
        service.submit(device)
    service.plan()
    written: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith(("INSERT", "UPDATE", "DELETE")):
            written.append(statement)

    event.listen(service.database.engine, "after_cursor_execute", note)
    assert service.plan() == []

    assert written == []


def test_planning_with_nothing_to_plan_writes_nothing(service: Service) -> None:
    before = service.everything()

    with service.database.session_scope() as session:
        assert plan_once(session) == []

    assert service.everything() == before


def all_placements(service: Service) -> list[Placement]:
    with service.database.session_scope(read_only=True) as session:
        return list(session.scalars(select(Placement).order_by(Placement.id)))
