"""Supervisors that prepare a run from a checkpoint whose read never returns: they leave all the same when they must."""

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from subprocess import Popen

import pytest
from sqlalchemy import text

from jobs.database import Database, now
from jobs.states import Intent, Outcome
from jobs.store import attempts, jobs
from jobs.tables import Host, Placement
from tests.api_server import NO_BROKER
from tests.children import start_child
from tests.integration.checkpoint_files import start_run
from tests.integration.store.conftest import Service
from tests.proxy import Proxy
from tests.waiting import wait_until
from worker import storage
from worker.clock import clock

LEASE_S = 5.0


class Reader:
    """A supervisor that is to continue from a checkpoint which is a pipe: who reads it waits for who writes it."""

    def __init__(self, database_url: str, folder: Path) -> None:
        self.service = Service(Database(database_url))
        self.service.register()
        self._folder = folder
        run = start_run(self.service, folder / "runs")
        self._pipe = run.save(10)
        self._pipe.unlink()
        os.mkfifo(self._pipe)
        with self.service.database.session_scope() as session:
            host = session.get_one(Host, run.placement.host_name)
            host.storages, host.looked_at = [storage.mark(folder / "runs")], now(session)
        self.service.end(run.placement, Outcome.LOST)
        self.service.rest_is_over(run.placement.job_id)
        (placement,) = self.service.plan()
        self.run_dir = folder / "runs" / "job-1" / "attempt-2-token"
        with self.service.database.session_scope() as session:
            attempts.get_placement(session, placement.id).run_dir = str(self.run_dir)
        self.placement: Placement = placement
        self._writer: int | None = None
        self.process: Popen[bytes] | None = None

    def start(self, database_url: str, **settings: object) -> None:
        """Start the supervisor."""
        own = {"DATABASE_URL": database_url, "BROKER_URL": NO_BROKER, "LEASE_S": LEASE_S, "HEARTBEAT_S": 1} | settings
        self.process = start_child(
            [sys.executable, "-m", "worker.supervisor", str(self.placement.id)],
            log=self._folder / "log",
            folder=self._folder,
            environment=os.environ | {f"RANKZERO_{name.upper()}": str(value) for name, value in own.items()},
        )

    def wait_until_it_reads(self) -> None:
        """Wait for the supervisor to read the checkpoint, of which nothing comes from now on."""
        wait_until(self._is_read, timeout_s=60, what=lambda: f"the checkpoint to be read: {self.log}")

    def break_off(self) -> None:
        """Let the read return, with half a file."""
        assert self._writer is not None
        os.close(self._writer)
        self._writer = None

    def wait_for_end(self) -> None:
        """Wait for the supervisor to end by itself, and in order."""
        assert self.process is not None
        process = self.process
        wait_until(
            lambda: process.poll() is not None, timeout_s=20, what=lambda: f"the supervisor to leave: {self.log}"
        )
        assert "Traceback" not in self.log, self.log
        assert process.returncode == 0, self.log

    @property
    def log(self) -> str:
        return (self._folder / "log").read_text()

    @property
    def end(self) -> tuple[str | None, str]:
        """How its attempt ended, and why."""
        attempt = self.service.attempts(self.placement.job_id)[-1]
        return attempt.outcome, (attempt.failure or {}).get("message", "")

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        if self._writer is not None:
            os.close(self._writer)
        self.service.database.dispose()

    def _is_read(self) -> bool:
        with suppress(OSError):  # ENXIO: nobody has opened it to read
            self._writer = os.open(self._pipe, os.O_WRONLY | os.O_NONBLOCK)
        return self._writer is not None


@pytest.fixture
def reader(database_url: str, tmp_path: Path) -> Iterator[Reader]:
    reader = Reader(database_url, tmp_path)
    yield reader
    reader.close()


@pytest.fixture
def postgres_reader(postgresql_url: str, tmp_path: Path) -> Iterator[Reader]:
    reader = Reader(postgresql_url, tmp_path)
    yield reader
    reader.close()


def test_a_job_is_cancelled_though_the_read_of_its_checkpoint_never_returns(reader: Reader, database_url: str) -> None:
    reader.start(database_url)
    reader.wait_until_it_reads()

    with reader.service.database.session_scope() as session:
        jobs.set_intent(session, reader.placement.job_id, Intent.CANCEL)
    reader.wait_for_end()

    assert reader.service.state(reader.placement.job_id) == "cancelled"
    assert reader.service.live_leases() == []
    assert not reader.run_dir.exists(), "no trainer was started"


def test_a_supervisor_whose_placement_others_have_ended_leaves_a_read_that_never_returns(
    reader: Reader, database_url: str
) -> None:
    reader.start(database_url)
    reader.wait_until_it_reads()

    reader.service.end(reader.placement, Outcome.LOST)
    reader.wait_for_end()

    assert not reader.run_dir.exists(), "no trainer was started"


@pytest.mark.parametrize("returns", [False, True])
def test_a_run_that_is_cut_off_before_its_start_for_longer_than_its_lease_is_lost_for_that(
    returns: bool, postgres_reader: Reader, postgresql_url: str
) -> None:
    reader = postgres_reader
    with Proxy(postgresql_url) as proxy:
        reader.start(proxy.url)
        reader.wait_until_it_reads()
        process = reader.process
        assert process is not None
        with proxy.refusing():
            over_at = clock() + LEASE_S + 1
            if returns:
                reader.break_off()
            wait_until(
                lambda: clock() > over_at or process.poll() is not None, timeout_s=30, what="the lease to run out"
            )
        reader.wait_for_end()

    assert reader.end == (Outcome.LOST, "its supervisor was cut off from the database")
    assert reader.service.live_leases() == []


def test_a_database_that_gives_no_answer_to_what_comes_before_the_start_for_a_lease_costs_the_attempt(
    postgres_reader: Reader, postgresql_url: str
) -> None:
    reader = postgres_reader
    with reader.service.database.engine.begin() as connection:
        # Of use for the lease, and not for that the host is short of disk: as if it went away each time it is told.
        connection.execute(
            text(
                "CREATE FUNCTION go_away() RETURNS trigger LANGUAGE plpgsql AS "
                "$$ BEGIN RAISE EXCEPTION 'gone' USING ERRCODE = 'admin_shutdown'; END $$"
            )
        )
        connection.execute(
            text("CREATE TRIGGER go_away BEFORE UPDATE ON hosts FOR EACH ROW EXECUTE FUNCTION go_away()")
        )

    reader.start(postgresql_url, min_free_bytes=2**60, lease_s=2, heartbeat_s=0.5)
    reader.wait_for_end()

    assert reader.end == (Outcome.LOST, "its supervisor was cut off from the database")
    assert reader.service.live_leases() == []
