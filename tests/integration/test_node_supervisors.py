"""Supervisors of runs on two hosts that never begin: each ends its own placement, and the last one the attempt."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobs.database import Database
from jobs.settings import get_settings
from jobs.states import Outcome
from jobs.store import attempts
from jobs.tables import Host, Placement
from tests.api_server import NO_BROKER
from tests.integration.endings import end_as
from tests.integration.store.conftest import Service
from tests.waiting import wait_until


class Nodes(Service):
    """A service with a job on `alpha` and `beta` that waits for its supervisors."""

    def __init__(self, database: Database, folder: Path) -> None:
        super().__init__(database)
        for name in ("alpha", "beta"):
            self.register(name)
        self._folder = folder
        self.supervisors: list[subprocess.Popen[str]] = []

    def place(self, **fields: Any) -> list[Placement]:
        """The placements of a new job, by node_rank."""
        job_id = self.submit("0", nodes=2, **fields)
        placements = [each for each in self.plan() if each.job_id == job_id]
        for placement in placements:
            self.move_run_dir(placement)
        with self.database.session_scope() as session:
            session.get_one(Host, "alpha").address = "127.0.0.1"
        return placements

    def move_run_dir(self, placement: Placement) -> None:
        """Have a placement's files lie in the test's folder."""
        with self.database.session_scope() as session:
            run_dir = str(self._folder / placement.host_name)
            attempts.get_placement(session, placement.id).run_dir = placement.run_dir = run_dir

    def supervise(self, placement: Placement, **settings: object) -> "subprocess.Popen[str]":
        """Start the supervisor of a placement."""
        database_url = self.database.url.render_as_string(hide_password=False)
        supervisor = subprocess.Popen(
            [sys.executable, "-m", "worker.supervisor", str(placement.id)],
            env=os.environ
            | {"RANKZERO_DATABASE_URL": database_url, "RANKZERO_BROKER_URL": NO_BROKER}
            | {f"RANKZERO_{name.upper()}": str(value) for name, value in settings.items()},
            stderr=subprocess.PIPE,
            text=True,
        )
        self.supervisors.append(supervisor)
        return supervisor

    def is_claimed(self, placement: Placement) -> bool:
        with self.database.session_scope(read_only=True) as session:
            return attempts.get_placement(session, placement.id).claimed_at is not None

    def failure(self, placement: Placement) -> dict[str, Any]:
        """What a placement that has ended says of it."""
        with self.database.session_scope(read_only=True) as session:
            failure = attempts.get_placement(session, placement.id).failure
        assert failure is not None
        return failure


@pytest.fixture
def nodes(postgresql_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Nodes]:
    # Its hosts beat once: they are not to be out of contact however long a supervisor takes on a busy machine.
    monkeypatch.setenv("RANKZERO_HOST_TIMEOUT_S", "600")
    get_settings.cache_clear()
    nodes = Nodes(Database(postgresql_url), tmp_path)
    yield nodes
    for supervisor in nodes.supervisors:
        supervisor.kill()
        supervisor.communicate()
    nodes.database.dispose()
    get_settings.cache_clear()


def finished(supervisor: "subprocess.Popen[str]") -> None:
    _, said = supervisor.communicate(timeout=60)
    assert "Traceback" not in said, said
    assert supervisor.returncode == 0, said


def test_a_node_that_waits_for_node_0s_decision_stops_when_that_one_ends_instead(nodes: Nodes) -> None:
    first, second = nodes.place()
    waiting = nodes.supervise(second)
    wait_until(lambda: nodes.is_claimed(second), timeout_s=30, what="the supervisor of node 1 to claim")
    nodes.claim(first, "1:1")

    assert end_as(nodes.database, first, Outcome.LOST) is None
    finished(waiting)

    (attempt,) = nodes.attempts(first.job_id)
    assert (attempt.outcome, (attempt.failure or {})["message"]) == (Outcome.LOST, "its supervisor died")
    assert nodes.failure(second)["message"] == "node 0 (alpha) has ended"
    assert nodes.job(first.job_id).retries == 1
    assert nodes.live_leases() == []


def test_a_node_that_cannot_reach_node_0_by_the_address_that_it_gives_says_what_to_set(nodes: Nodes) -> None:
    _, second = nodes.place()

    finished(nodes.supervise(second, address="198.18.0.2"))

    failure = nodes.failure(second)
    assert failure["cause"] == "lost"
    assert "set RANKZERO_ADDRESS there" in failure["message"]


def test_node_0_whose_port_another_program_has_is_lost_and_the_next_attempt_has_another_port(nodes: Nodes) -> None:
    first, second = nodes.place()
    assert first.master_port is not None
    with socket.create_server(("127.0.0.1", first.master_port)):
        finished(nodes.supervise(first))
    assert nodes.failure(first)["cause"] == "lost"
    assert f"another program has port {first.master_port} of this host" in nodes.failure(first)["message"]

    nodes.claim(second, "2:2")
    assert nodes.end(second, Outcome.LOST) == "queued"
    nodes.rest_is_over(first.job_id)
    again, _ = nodes.plan()
    assert again.master_port not in (None, first.master_port)


def test_a_job_whose_time_is_spent_fails_before_its_ranks_start(nodes: Nodes) -> None:
    (placement,) = nodes.run_on("alpha", time_limit_s=60)
    nodes.trains_since(placement, seconds=100)
    nodes.end(placement, Outcome.LOST)
    nodes.rest_is_over(placement.job_id)
    (again,) = nodes.plan()
    nodes.move_run_dir(again)

    finished(nodes.supervise(again))

    assert nodes.failure(again)["cause"] == "time_limit"
    assert nodes.state(placement.job_id) == "failed"
