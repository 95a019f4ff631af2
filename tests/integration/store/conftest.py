"""A small service without processes: one database, hosts with devices, and jobs on their way through the store."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select, update

from jobs.database import Database, now
from jobs.planning import plan_once
from jobs.settings import get_settings
from jobs.spec import JobSpec
from jobs.states import Outcome, State
from jobs.store import attempts, endings, hosts, jobs, leases, search
from jobs.store.hosts import DeviceInfo
from jobs.tables import Attempt, Base, Host, Job, JobEvent, Lease, Placement
from tests.integration.endings import end_as

WORKER = "1:1@boot"
"""Identity of the worker that registers the hosts."""


class Service:
    """What planner, supervisors and users do to one database, a committed transaction for each step."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def register(self, name: str = "alpha", *, worker: str = WORKER, cuda: int = 2, cpu: int = 2) -> None:
        """Register a host with simulated CUDA devices and CPU slots."""
        devices = [DeviceInfo(f"cuda:{index}", "cuda", model="simulated", simulated=True) for index in range(cuda)]
        devices += [DeviceInfo(f"cpu:{index}", "cpu") for index in range(cpu)]
        with self.database.session_scope() as session:
            hosts.register(session, name, worker=worker, run_root=f"/runs/{name}", devices=devices)

    def submit(self, device: Any = "0", **fields: Any) -> int:
        """Submit a job, and return its id."""
        spec = {"device": device, "train": {"model": "mlp", "data": "digits"}} | fields
        with self.database.session_scope() as session:
            return jobs.submit(session, JobSpec.model_validate(spec)).job.id

    def plan(self) -> list[Placement]:
        """Plan once, and return the placements to launch."""
        with self.database.session_scope() as session:
            return [attempts.get_placement(session, launch.placement_id) for launch in plan_once(session)]

    def launch(self, device: Any = "0", **fields: Any) -> Placement:
        """Submit a job and plan it; return its placement."""
        job_id = self.submit(device, **fields)
        (placement,) = [each for each in self.plan() if each.job_id == job_id]
        return placement

    def claim(self, placement: Placement, supervisor: str = "1:1") -> Placement:
        with self.database.session_scope() as session:
            return leases.claim(session, placement.id, supervisor)

    def run(self, device: Any = "0", **fields: Any) -> Placement:
        """Bring a new job to `running`; return its placement."""
        placement = self.claim(self.launch(device, **fields))
        with self.database.session_scope() as session:
            attempts.set_running(session, placement, resumed_step=None)
        return placement

    def run_on(self, *host_names: str, device: Any = "0", **fields: Any) -> list[Placement]:
        """Bring a new job to `running` on as many hosts as it asks for, all that there are; return its placements."""
        job_id = self.submit(device, nodes=len(host_names), **fields)
        placements = [self.claim(each, f"{each.node_rank + 1}:1") for each in self.plan() if each.job_id == job_id]
        assert [placement.host_name for placement in placements] == list(host_names)
        with self.database.session_scope() as session:
            attempts.set_running(session, placements[0], resumed_step=None)
        return placements

    def end(self, placement: Placement, outcome: Outcome, *, failure: dict[str, Any] | None = None) -> State:
        """End the last placement of an attempt that is open; return the job's new state."""
        conclusion = end_as(self.database, placement, outcome, failure=failure)
        assert conclusion is not None, "other placements of the attempt are open"
        return conclusion.state

    def expire(self) -> list[int]:
        """Expire what has run out, each in a transaction of its own, as a tick does; return the placements lost."""
        with self.database.session_scope(read_only=True) as session:
            expired = leases.expired(session, now(session))
        return [placement.id for placement in expired if self.expire_one(placement)]

    def expire_one(self, placement: Placement) -> bool:
        with self.database.session_scope() as session:
            return endings.expire(session, placement)

    def run_out(self, placement: Placement) -> None:
        """Let so much time pass for a placement's leases that they have run out."""
        with self.database.session_scope() as session:
            mine = Lease.placement_id == placement.id
            lease = session.scalars(select(Lease).where(mine)).first()
            assert lease is not None
            past = lease.expires_at - timedelta(hours=1)
            session.execute(update(Lease).where(mine).values(expires_at=past, acquired_at=past))

    def held_since(self, placement: Placement, *, seconds: float) -> None:
        """Let so much time pass since a placement got its leases."""
        with self.database.session_scope() as session:
            for lease in session.scalars(select(Lease).where(Lease.placement_id == placement.id)):
                lease.acquired_at -= timedelta(seconds=seconds)

    def trains_since(self, placement: Placement, *, seconds: float) -> None:
        """Let so much time pass since the first record of a placement's attempt."""
        with self.database.session_scope() as session:
            attempt = session.get_one(Attempt, (placement.job_id, placement.attempt))
            assert attempt.started_at is not None
            attempt.started_at -= timedelta(seconds=seconds)

    def rest_is_over(self, job_id: int) -> None:
        """Let so much time pass that a job has rested after its lost attempt."""
        with self.database.session_scope() as session:
            job = jobs.get(session, job_id)
            assert job.not_before is not None
            job.not_before -= timedelta(hours=1)

    def fall_silent(self, host_name: str) -> None:
        """Let an hour pass since the host's worker was last heard of."""
        with self.database.session_scope() as session:
            host = session.get_one(Host, host_name)
            host.heartbeat_at -= timedelta(hours=1)

    def job(self, job_id: int) -> Job:
        with self.database.session_scope(read_only=True) as session:
            return jobs.get(session, job_id)

    def state(self, job_id: int) -> str:
        return self.job(job_id).state

    def attempts(self, job_id: int) -> Sequence[Attempt]:
        with self.database.session_scope(read_only=True) as session:
            return attempts.select_attempts(session, job_id)

    def live_leases(self) -> list[tuple[str, int, int]]:
        """Device name, job and attempt of every lease that holds."""
        with self.database.session_scope(read_only=True) as session:
            history = hosts.lease_history(session)
        return [(name, lease.job_id, lease.attempt) for _, name, lease, _ in history if lease.released_at is None]

    def leases(self, placement: Placement) -> Sequence[Lease]:
        query = select(Lease).where(Lease.job_id == placement.job_id, Lease.attempt == placement.attempt)
        with self.database.session_scope(read_only=True) as session:
            return session.scalars(query.order_by(Lease.id)).all()

    def events(self, job_id: int) -> Sequence[JobEvent]:
        with self.database.session_scope(read_only=True) as session:
            return session.scalars(search.select_events(job_id)).all()

    def moves(self, job_id: int) -> list[tuple[str | None, str | None]]:
        """Every change of state that the job's events tell of, oldest first."""
        return [(event.from_state, event.to_state) for event in self.events(job_id) if event.kind == "state"]

    def everything(self) -> dict[str, list[tuple[Any, ...]]]:
        """All rows of all tables, to show that something changed nothing."""
        with self.database.session_scope(read_only=True) as session:
            return {
                table.name: sorted((tuple(row) for row in session.execute(select(table))), key=repr)
                for table in Base.metadata.sorted_tables
            }


@pytest.fixture(autouse=True)
def no_rest_between_attempts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A job whose attempt was lost starts again with the next plan."""
    monkeypatch.setenv("RANKZERO_RETRY_BACKOFF_S", "0")
    get_settings.cache_clear()
    yield
    get_settings.cache_clear()


@pytest.fixture
def service(database: Database) -> Service:
    """A service with one host, `alpha`: simulated `cuda:0` and `cuda:1`, and two CPU slots."""
    service = Service(database)
    service.register()
    return service


@pytest.fixture
def postgres_service(postgresql_url: str) -> Iterator[Service]:
    """The same on PostgreSQL only, where writing transactions run side by side and wait for each other's rows."""
    service = Service(Database(postgresql_url))
    service.register()
    yield service
    service.database.dispose()


def times(row: Any) -> dict[str, datetime]:
    """The times of a row, by column."""
    values = {column.key: getattr(row, column.key) for column in row.__table__.columns}
    return {key: value for key, value in values.items() if isinstance(value, datetime)}
