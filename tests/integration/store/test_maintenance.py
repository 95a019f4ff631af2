"""What an operator does: hosts drained and taken back, devices released."""

import threading

import pytest
from sqlalchemy import update

from jobs.database import lock_planning, now
from jobs.errors import HostNameTakenError, NotFoundError, StateConflictError
from jobs.states import Outcome
from jobs.store import hosts, leases, maintenance
from jobs.tables import Attempt, DeviceRow, Host
from tests.integration.store.conftest import WORKER, Service
from tests.integration.store.turns import wait_for_blocked


def drain(service: Service, name: str = "alpha", *, note: str | None = None, evict: bool = False) -> None:
    with service.database.session_scope() as session:
        maintenance.drain(session, name, note=note, evict=evict)


def host(service: Service) -> Host:
    with service.database.session_scope(read_only=True) as session:
        return session.get_one(Host, "alpha")


def orders(service: Service, job_id: int) -> list[tuple[str | None, str | None]]:
    return [(attempt.stop_order, attempt.stop_message) for attempt in service.attempts(job_id)]


def test_a_drained_host_gets_no_jobs_keeps_those_it_has_and_gets_new_ones_when_it_is_taken_back(
    service: Service,
) -> None:
    running = service.run("0")
    drain(service, note="new fan")
    waits = service.submit("1")

    assert service.plan() == []
    assert service.job(waits).reason == "every host with cuda:1 is drained: new fan"
    assert orders(service, running.job_id) == [(None, None)]
    with service.database.session_scope() as session:
        maintenance.take_back(session, "alpha")
    assert [placement.job_id for placement in service.plan()] == [waits]


def test_draining_again_changes_the_note_and_not_since_when(service: Service) -> None:
    drain(service, note="new fan")
    since = host(service).drained_at
    drain(service)

    assert since is not None
    assert (host(service).drained_at, host(service).drain_note) == (since, None)


def test_eviction_tells_every_attempt_there_to_stop_once_and_no_other(service: Service) -> None:
    service.register("beta")
    here, preempted, elsewhere = service.run("0", host="alpha"), service.run("1", host="alpha"), service.run("cpu")
    assert elsewhere.host_name == "alpha"
    there = service.run("0", host="beta")
    with service.database.session_scope() as session:
        mine = Attempt.job_id == preempted.job_id
        session.execute(update(Attempt).where(mine).values(stop_order="preempted", stop_message="for job 9"))

    drain(service, note="new fan", evict=True)
    drain(service, note="new fan", evict=True)

    evicted = ("drained", "host alpha is drained: new fan")
    assert orders(service, here.job_id) == [evicted]
    assert orders(service, elsewhere.job_id) == [evicted]
    assert orders(service, preempted.job_id) == [("preempted", "for job 9")]
    assert orders(service, there.job_id) == [(None, None)]
    told = [event.detail["message"] for event in service.events(here.job_id) if event.kind == "log"]
    assert told == ["host alpha is drained: new fan"]


def test_a_drain_waits_for_the_plan_that_saw_the_host_open(postgres_service: Service) -> None:
    service = postgres_service
    with service.database.session_scope() as session:
        lock_planning(session)
        drainer = threading.Thread(target=drain, args=(service,), kwargs={"evict": True})
        drainer.start()
        wait_for_blocked(service.database)
        undrained = host(service).drained_at
    drainer.join()

    assert undrained is None
    assert host(service).drained_at is not None


def test_an_eviction_and_a_supervisor_that_writes_its_placement_do_not_wait_for_each_other_in_a_circle(
    postgres_service: Service,
) -> None:
    service = postgres_service
    placement = service.launch("0")
    drainer = threading.Thread(target=drain, args=(service,), kwargs={"evict": True})
    with service.database.session_scope() as session:
        placement = leases.claim(session, placement.id, "1:1")
        drainer.start()  # it has the host's row, and waits for the attempt's
        wait_for_blocked(service.database)
        # Written for the second time in a transaction, a row's references are checked anew, which takes the host's.
        leases.renew(session, placement)
    drainer.join()

    assert orders(service, placement.job_id) == [("drained", "host alpha is drained")]


def test_a_released_device_is_handed_out_with_its_losses_forgotten(service: Service) -> None:
    with service.database.session_scope() as session:
        sick = update(DeviceRow).where(DeviceRow.name == "cuda:1")
        session.execute(sick.values(quarantined_at=now(session), quarantine_reason="three losses", losses=3))
    job_id = service.submit("1")
    assert service.plan() == []

    with service.database.session_scope() as session:
        maintenance.release(session, "alpha", "cuda:1")

    assert [placement.job_id for placement in service.plan()] == [job_id]
    with service.database.session_scope(read_only=True) as session:
        (row,) = session.query(DeviceRow).where(DeviceRow.name == "cuda:1")
    assert (row.losses, row.quarantined_at, row.quarantine_reason) == (0, None, None)


def test_a_host_that_is_gone_for_good_is_listed_no_more_and_no_job_waits_for_its_accelerators(service: Service) -> None:
    service.register("beta", cuda=0)
    ran = service.run("0")
    service.end(ran, Outcome.SUCCEEDED)
    service.fall_silent("alpha")
    waits = service.submit("auto")
    assert service.plan() == []

    with service.database.session_scope() as session:
        maintenance.remove(session, "alpha")

    assert [(each.job_id, each.devices) for each in service.plan()] == [(waits, ["cpu:0"])]
    with service.database.session_scope(read_only=True) as session:
        assert [each.name for each in hosts.all_hosts(session)] == ["beta"]
        assert {row.host_name for row, _, _ in hosts.devices(session)} == {"beta"}
    with pytest.raises(NotFoundError, match="no host 'alpha'"):
        drain(service)
    assert [lease.job_id for lease in service.leases(ran)] == [ran.job_id]


def test_a_worker_brings_its_removed_host_back_by_registering_and_not_by_a_heartbeat(service: Service) -> None:
    service.fall_silent("alpha")
    with service.database.session_scope() as session:
        maintenance.remove(session, "alpha")

    with pytest.raises(HostNameTakenError, match="was removed"), service.database.session_scope() as session:
        hosts.beat(session, "alpha", worker=WORKER)
    service.register("alpha")

    assert service.launch("0,1").host_name == "alpha"


def test_a_host_that_reports_or_may_still_run_something_is_not_removed(service: Service) -> None:
    running = service.run("0")
    with (
        pytest.raises(StateConflictError, match="host 'alpha' has a worker that reports"),
        service.database.session_scope() as session,
    ):
        maintenance.remove(session, "alpha")
    service.fall_silent("alpha")
    with (
        pytest.raises(StateConflictError, match=f"job {running.job_id} may still run on host 'alpha'"),
        service.database.session_scope() as session,
    ):
        maintenance.remove(session, "alpha")


def test_a_host_or_device_that_is_not_there_is_named(service: Service) -> None:
    with pytest.raises(NotFoundError, match="no host 'beta'"):
        drain(service, "beta")
    with (
        pytest.raises(NotFoundError, match="host 'alpha' has no device 'cuda:7'"),
        service.database.session_scope() as session,
    ):
        maintenance.release(session, "alpha", "cuda:7")
