"""A worker's sweeps where the database's clock is set, or where a stopped process keeps its write lock."""

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import event, make_url, text

from jobs.database import Database
from jobs.settings import Settings
from jobs.store import leases
from jobs.store.hosts import DeviceInfo
from jobs.tables import Placement
from tests.integration.store.conftest import Service
from tests.waiting import wait_until
from trainer.process_identity import identity
from worker import clock, tick
from worker.care import Care
from worker.fitness import Fitness
from worker.planning import Planning
from worker.registration import Registration
from worker.storage import Storages
from worker.tick import Tick

HOLDS_THE_WRITE_LOCK = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
sys.stdin.readline()
connection.execute("BEGIN IMMEDIATE")
print("has it", flush=True)
time.sleep(600)
"""


class Sweeps:
    """The worker of host `alpha`, as far as it sweeps."""

    def __init__(self, database: Database, settings: Settings) -> None:
        fitness = Fitness(settings.run_root)
        devices = [DeviceInfo(f"cuda:{index}", "cuda", simulated=True) for index in range(2)]
        registration = Registration(database, settings, devices, Storages(database, settings), fitness)
        registration.keep()
        self._begun = threading.Semaphore(0)
        self._keep = registration.keep
        registration.keep = self._counted  # type: ignore[method-assign]  # to see it called
        self.care = Care(database, settings, fitness)
        self.tick = Tick(database, settings, registration, self.care, Planning(database), on_orphaned=lambda: None)

    def _counted(self) -> None:
        self._begun.release()
        self._keep()

    def wait_for_a_whole_one(self) -> None:
        """Wait until a sweep is over that began after this call."""
        while self._begun.acquire(blocking=False):
            pass
        for _ in range(2):  # the second begins when the first is over
            assert self._begun.acquire(timeout=20)

    @contextmanager
    def running(self) -> Iterator[None]:
        self.tick.start()
        try:
            yield
        finally:
            self.tick.stop()


class Times:
    """The database's clock and the workers' own: both go on as time does, and are moved by the test."""

    def __init__(self, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        self._database = database
        self._passed_s = 0.0
        monkeypatch.setattr(tick, "clock", lambda: clock.clock() + self._passed_s)
        name = make_url(database.url).database
        with database.engine.begin() as connection:
            for statement in (
                "CREATE TABLE public.clock_offset AS SELECT 0.0::float AS seconds",
                "CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT"
                " pg_catalog.clock_timestamp() + make_interval(secs => (SELECT seconds FROM public.clock_offset))'",
                f'ALTER DATABASE "{name}" SET search_path = public, pg_catalog',
            ):
                connection.execute(text(statement))
        database.dispose()  # connections that are made from now on have the path

    def set_forward(self, seconds: float) -> None:
        """Set the database's clock."""
        with self._database.engine.begin() as connection:
            connection.execute(text("UPDATE public.clock_offset SET seconds = seconds + :more"), {"more": seconds})

    def pass_by(self, seconds: float) -> None:
        """Let time pass for all, the database first: a sweep in between sees less than a heartbeat of a step."""
        self.set_forward(seconds)
        self._passed_s += seconds


@contextmanager
def process(*command: str) -> Iterator["subprocess.Popen[str]"]:
    """A stand-in for a supervisor."""
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield child
    finally:
        child.kill()
        child.communicate()


def renew(service: Service, placement: Placement) -> None:
    with service.database.session_scope() as session:
        leases.renew(session, placement)


def test_a_step_of_the_databases_clock_ends_no_run_of_any_host_whose_supervisor_goes_on_to_renew(
    postgresql_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(host_name="alpha", run_root=tmp_path, tick_s=0.05, heartbeat_s=30)
    database = Database(postgresql_url)
    with ExitStack() as stack:
        stack.callback(database.dispose)
        times, service = Times(database, monkeypatch), Service(database)
        sweeps = Sweeps(database, settings)
        service.register("beta", worker="2:2@boot")
        own = service.claim(
            service.launch({"count": 1, "host": "alpha"}),
            identity(stack.enter_context(process("sleep", "600")).pid),
        )
        other, silent = (service.run({"count": 1, "host": "beta"}, max_retries=0) for _ in range(2))

        stack.enter_context(sweeps.running())
        sweeps.wait_for_a_whole_one()
        for _ in range(3):  # until it has long been in touch
            times.pass_by(25)
            sweeps.wait_for_a_whole_one()
        for placement in (own, other, silent):
            renew(service, placement)
        times.set_forward(3600)
        sweeps.wait_for_a_whole_one()
        assert [service.state(each.job_id) for each in (own, other, silent)] == ["starting", "running", "running"]

        renew(service, own)
        renew(service, other)
        for _ in range(3):
            times.pass_by(25)
            sweeps.wait_for_a_whole_one()
        wait_until(lambda: service.state(silent.job_id) == "failed", timeout_s=20, what="the silent one to be given up")
        assert [service.state(each.job_id) for each in (own, other)] == ["starting", "running"]


def test_a_supervisor_of_this_host_that_is_stopped_with_sqlites_write_lock_is_killed_once_its_lease_is_over(
    sqlite_url: str, tmp_path: Path
) -> None:
    settings = Settings(host_name="alpha", run_root=tmp_path, tick_s=0.05, heartbeat_s=0.1)
    database = Database(sqlite_url)
    event.listen(database.engine, "connect", lambda connection, _: connection.execute("PRAGMA busy_timeout=100"))
    path = str(make_url(sqlite_url).database)
    with ExitStack() as stack:
        stack.callback(database.dispose)
        service = Service(database)
        sweeps = Sweeps(database, settings)
        holder = stack.enter_context(process(sys.executable, "-c", HOLDS_THE_WRITE_LOCK, path))
        healthy = stack.enter_context(process("sleep", "600"))
        late = service.claim(service.launch("0", max_retries=0), identity(holder.pid))
        in_time = service.claim(service.launch("1"), identity(healthy.pid))
        service.run_out(late)
        assert holder.stdin is not None
        assert holder.stdout is not None
        print(file=holder.stdin, flush=True)
        assert holder.stdout.readline() == "has it\n"
        holder.send_signal(signal.SIGSTOP)

        stack.enter_context(sweeps.running())
        assert holder.wait(timeout=20) == -signal.SIGKILL
        wait_until(lambda: service.state(late.job_id) == "failed", timeout_s=20, what="its placement to end")

        assert healthy.poll() is None
        assert service.live_leases() == [("cuda:1", in_time.job_id, 1)]
