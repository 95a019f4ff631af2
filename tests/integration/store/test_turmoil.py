"""Everybody at once: planners, supervisors of several hosts, ticks and users on one database, and what then holds."""

import random
import threading
from collections.abc import Callable

import pytest
from sqlalchemy import select, update

from jobs.errors import StaleAttemptError
from jobs.states import Intent, Outcome, StopOrder
from jobs.store import attempts, jobs, leases
from jobs.tables import Job, Lease, Placement
from tests import laws
from tests.integration.endings import REASONS, end_as
from tests.integration.store.conftest import WORKER, Service

ROUNDS = 25
"""Steps of each thread."""
KILLED = {"cause": "killed_by_signal", "message": "rank 0 was ended by SIGKILL", "rank": 0}


class Turmoil:
    """Threads that each do what one kind of process does, in an order drawn by lot."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.errors: list[BaseException] = []

    def run(self, *works: Callable[[random.Random], None]) -> None:
        threads = [
            threading.Thread(target=self._repeat, args=(work, random.Random(seed))) for seed, work in enumerate(works)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _repeat(self, work: Callable[[random.Random], None], draws: random.Random) -> None:
        for _ in range(ROUNDS):
            try:
                work(draws)
            except StaleAttemptError:
                continue  # somebody else was faster: what a supervisor then learns
            except BaseException as error:  # noqa: BLE001  # looked at by the test's own thread
                self.errors.append(error)

    def submit(self, draws: random.Random) -> None:
        nodes = draws.choice([1, 2])
        policy = {"preemptible": True, "max_retries": draws.choice([0, 1, 5]), "user": draws.choice(["ada", "bob"])}
        self.service.submit(draws.choice(["0", "1", "0,1"]), nodes=nodes, priority=draws.randint(0, 100), **policy)

    def plan(self, _draws: random.Random) -> None:
        self.service.plan()

    def supervise(self, draws: random.Random) -> None:
        """Claim, renew, report or end a placement that is open."""
        placement = draws.choice(self._open() or [None])
        if placement is None:
            return
        match draws.choice(["claim", "renew", "run", "end", "end", "end"]):
            case "claim":
                self.service.claim(placement, f"{placement.id}:1")
            case "renew":
                with self.service.database.session_scope() as session:
                    leases.renew(session, placement)
            case "run" if placement.node_rank == 0:
                with self.service.database.session_scope() as session:
                    attempts.set_running(session, placement, resumed_step=None)
                    attempts.note(session, placement, "log", {"message": "word"})
            case "end":
                self._end(placement, draws)

    def tick(self, draws: random.Random) -> None:
        """Find a lease that has run out."""
        if (placement := draws.choice(self._open() or [None])) is not None and draws.random() < 0.3:
            with self.service.database.session_scope() as session:
                held = update(Lease).where(Lease.placement_id == placement.id, Lease.released_at.is_(None))
                session.execute(held.values(expires_at=placement.created_at))
        self.service.expire()

    def meddle(self, draws: random.Random) -> None:
        """Write what a user, or an operator, wants of some job."""
        with self.service.database.session_scope(read_only=True) as session:
            live = session.execute(select(Job.id, Job.attempt).where(Job.finished_at.is_(None))).all()
        if not live:
            return
        job_id, attempt = draws.choice(live)
        with self.service.database.session_scope() as session:
            if draws.random() < 0.5:
                jobs.set_intent(session, job_id, draws.choice([Intent.PAUSE, Intent.RUN, Intent.RUN, Intent.CANCEL]))
            else:
                attempts.order_stop(session, StopOrder.DRAINED, "the host is drained", job_id=job_id, attempt=attempt)

    def settle(self) -> None:
        """Cancel what is left, and end what is open."""
        with self.service.database.session_scope(read_only=True) as session:
            live = session.scalars(select(Job.id).where(Job.finished_at.is_(None))).all()
        for job_id in live:
            with self.service.database.session_scope() as session:
                jobs.set_intent(session, job_id, Intent.CANCEL)
        for placement in self._open():
            end_as(self.service.database, placement, Outcome.LOST)

    def _open(self) -> list[Placement]:
        return [each for name in ("alpha", "beta", "gamma") for each in self._open_on(name)]

    def _open_on(self, host_name: str) -> list[Placement]:
        with self.service.database.session_scope(read_only=True) as session:
            return list(attempts.open_placements(session, host_name, worker=WORKER))

    def _end(self, placement: Placement, draws: random.Random) -> None:
        outcome = draws.choice([Outcome.SUCCEEDED, Outcome.FAILED, Outcome.LOST, Outcome.PAUSED])
        if outcome is Outcome.SUCCEEDED and placement.node_rank == 0:
            with self.service.database.session_scope() as session:
                attempts.set_running(session, placement, resumed_step=None)  # what has succeeded has begun
        failure = KILLED if outcome is Outcome.LOST else REASONS.get(outcome)
        end_as(self.service.database, placement, outcome, failure=failure)


@pytest.mark.timeout(120)
def test_planners_supervisors_ticks_and_users_at_once_never_lock_each_other_out_and_the_laws_hold(
    service: Service,
) -> None:
    for name in ("beta", "gamma"):
        service.register(name)
    turmoil = Turmoil(service)

    supervisors = [turmoil.supervise] * 4
    turmoil.run(turmoil.submit, turmoil.plan, turmoil.plan, turmoil.tick, turmoil.meddle, *supervisors)
    turmoil.settle()

    assert turmoil.errors == []
    with service.database.session_scope(read_only=True) as session:
        all_jobs = session.scalars(select(Job.id)).all()
        assert session.scalars(select(Job.id).where(Job.finished_at.is_(None))).all() == []
        laws.assert_leases_never_overlapped(session)
        for job_id in all_jobs:
            laws.assert_attempts_within_budget(session, job_id)
            laws.assert_placements_end_with_their_devices(session, job_id)
