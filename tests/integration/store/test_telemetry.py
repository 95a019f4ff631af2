"""Telemetry in the store: stretches add up, by host and by job, and are forgotten in time."""

import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from jobs.database import now
from jobs.settings import Settings
from jobs.states import Outcome
from jobs.store import hosts, telemetry
from jobs.store.hosts import DeviceInfo
from jobs.store.telemetry import Stretch
from jobs.tables import DeviceSample, Host
from tests.integration.store.conftest import WORKER, Service
from tests.waiting import wait_until
from worker.gpus import Reading
from worker.telemetry import Telemetry

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def register_gpus(service: Service, name: str = "alpha") -> None:
    """Give a host two real GPUs in place of the simulated ones."""
    gpus = [DeviceInfo(f"cuda:{index}", "cuda", uuid=f"GPU-{name}-{index}", model="H200") for index in range(2)]
    with service.database.session_scope() as session:
        hosts.register(session, name, worker=WORKER, run_root=f"/runs/{name}", devices=gpus)


def add(service: Service, *stretches: Stretch, host: str = "alpha") -> None:
    with service.database.session_scope() as session:
        telemetry.add(session, host, stretches)


def of_host(service: Service, name: str = "alpha", **limits: datetime) -> list[DeviceSample]:
    with service.database.session_scope(read_only=True) as session:
        return list(session.scalars(telemetry.select_host(name, **limits)))


@dataclass
class FixedGpus:
    """GPUs that tell the same each time; those that are not named do not answer."""

    readings: dict[str, Reading] = field(default_factory=dict)

    def read(self, uuid: str) -> Reading | None:
        return self.readings.get(uuid)


def test_a_stretch_that_two_workers_have_told_of_is_one_with_both_in_it(service: Service) -> None:
    register_gpus(service)
    add(service, Stretch("GPU-alpha-0", AT, 3, 40.0, 400, 70.0, 300.0))
    add(service, Stretch("GPU-alpha-0", AT, 1, 80.0, 300, 75.0, None))

    (sample,) = of_host(service)

    assert (sample.samples, sample.utilisation, sample.power_w) == (4, 50.0, 300.0)
    assert (sample.memory_bytes, sample.temperature_c) == (400, 75.0)
    assert sample.at == AT


def test_figures_are_read_in_order_and_within_limits_and_other_hosts_have_their_own(service: Service) -> None:
    register_gpus(service)
    register_gpus(service, "beta")
    add(service, *(Stretch(f"GPU-alpha-{index}", AT + n * MINUTE, 1) for index in (1, 0) for n in (2, 0, 1)))
    add(service, Stretch("GPU-beta-0", AT, 1), Stretch("GPU-alpha-0", AT, 1), host="beta")

    found = [(each.at, each.device.name) for each in of_host(service, begin=AT + MINUTE, end=AT + 2 * MINUTE)]

    assert found == [(AT + MINUTE, "cuda:0"), (AT + MINUTE, "cuda:1")]
    assert [each.device.uuid for each in of_host(service, "beta")] == ["GPU-beta-0"]


def test_a_job_has_the_figures_of_its_devices_while_it_held_them(service: Service) -> None:
    register_gpus(service)
    placement = service.run("1")
    service.end(placement, Outcome.SUCCEEDED)
    (lease,) = service.leases(placement)
    assert lease.released_at is not None
    begin = lease.acquired_at.replace(second=0, microsecond=0)
    times = [begin - MINUTE, begin, lease.released_at + MINUTE]
    add(service, *(Stretch(f"GPU-alpha-{index}", at, 1) for index in range(2) for at in times))

    with service.database.session_scope(read_only=True) as session:
        query = telemetry.select_job(session, placement.job_id, stretch_s=60)
        found = [(each.device.name, each.at) for each in session.scalars(query)]
        of_no_job = session.scalars(telemetry.select_job(session, placement.job_id + 1, stretch_s=60)).all()

    assert found == [("cuda:1", begin)]
    assert of_no_job == []


def test_old_figures_are_forgotten_a_few_at_a_time(service: Service) -> None:
    register_gpus(service)
    with service.database.session_scope(read_only=True) as session:
        at = now(session)
    ages = [timedelta(days=15), timedelta(days=14, minutes=1), timedelta(days=13)]
    add(service, *(Stretch(f"GPU-alpha-{index}", at - age, 1) for index in range(2) for age in ages))

    forgotten = []
    for _ in range(3):
        with service.database.session_scope() as session:
            forgotten.append(telemetry.forget(session, older_than=timedelta(days=14), limit=3))

    assert forgotten == [3, 1, 0]
    assert {each.at for each in of_host(service)} == {at - timedelta(days=13)}


def test_a_worker_writes_what_its_gpus_tell_on_the_database_s_clock(service: Service) -> None:
    register_gpus(service)
    gpus = FixedGpus({"GPU-alpha-1": Reading(utilisation=97.0, power_w=650.0)})
    settings = Settings(host_name="alpha", telemetry_bucket_s=3600)
    reader = Telemetry(service.database, settings, ["GPU-alpha-0", "GPU-alpha-1"], gpus, is_held=lambda: True)

    for _ in range(2):
        reader.read()
        reader.write()

    (sample,) = of_host(service)
    with service.database.session_scope(read_only=True) as session:
        age = session.get_one(Host, "alpha").heartbeat_at - sample.at
    assert timedelta(0) <= age < timedelta(hours=1)
    assert (sample.device.name, sample.samples, sample.utilisation, sample.power_w) == ("cuda:1", 2, 97.0, 650.0)


def test_the_worker_s_thread_writes_stretch_after_stretch_and_only_under_its_own_name(
    postgres_service: Service,
) -> None:
    register_gpus(postgres_service)
    settings = Settings(host_name="alpha", telemetry_s=0.05, telemetry_bucket_s=1)
    gpus = FixedGpus({"GPU-alpha-0": Reading(power_w=650.0)})
    is_held = threading.Event()
    reader = Telemetry(postgres_service.database, settings, ["GPU-alpha-0"], gpus, is_held=is_held.is_set)
    reader.start()
    try:
        wait_until(lambda: reader.has_unwritten, timeout_s=10, what="a first reading")
        assert of_host(postgres_service) == []
        is_held.set()
        wait_until(lambda: len(of_host(postgres_service)) > 1, timeout_s=20, what="two stretches")
    finally:
        reader.stop()
        reader.join(5)
    assert not reader.is_alive()
