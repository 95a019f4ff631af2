"""A cancel races the claim: whichever comes first, the job ends cancelled, once, with no device held, and stays so."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import pytest
from sqlalchemy import select

from jobs.database import Database
from jobs.errors import StaleAttemptError
from jobs.settings import get_settings
from jobs.states import Intent, State
from jobs.store import attempts, endings, hosts, jobs, leases
from jobs.tables import Lease, Placement
from tests.faults.matrix.table import fault_of
from tests.integration.store.conftest import WORKER, Service
from worker import stops
from worker.stops import Stop

pytestmark = pytest.mark.timeout(900)  # a thousand races

Result = TypeVar("Result")

STEPS = ("plan", "claim", "start", "look")
"""What a cancel races: the planner's claim of the devices, the supervisor's of the placement, and what follows."""
HEAD_START_S = 0.001
"""By how much the cancel begins before the step at most; it begins before the step's end."""
BOTH_COME_FIRST_FROM = 500
"""Races in which planner and user must each have been the first for once."""


@pytest.fixture
def service(database_url: str) -> Iterator[Service]:
    """A service without processes, whose host has two devices; the test runs once on each engine."""
    service = Service(Database(database_url))
    service.register()
    yield service
    service.database.dispose()


class Race:
    """One job on its way to its ranks, and its user, who wants it no more."""

    def __init__(
        self, service: Service, draws: random.Random, user: ThreadPoolExecutor, lengths_s: dict[str, float]
    ) -> None:
        """`lengths_s` has how long each step took lately; races keep it for those that follow."""
        self.service = service
        self.raced_step = draws.choice(STEPS)
        self._lengths_s = lengths_s
        # Over all of the step: a plan reads for long before it claims anything.
        self._apart_s = draws.uniform(-HEAD_START_S, lengths_s.get(self.raced_step, HEAD_START_S))
        self._user = user
        self.job_id = service.submit("0")
        self.placements: list[Placement] = []

    def run(self) -> None:
        """Plan, claim and begin as worker and supervisor do, and end what is to be ended."""
        with self.service.database.session_scope() as session:
            hosts.beat(session, "alpha", worker=WORKER)  # a thousand races take longer than a host may be silent
        self.placements = self._step("plan", self.service.plan)
        assert self.placements or self.raced_step == "plan", self.service.job(self.job_id).reason
        for placement in self.placements:
            self._step("claim", partial(self.service.claim, placement))
            self._step("start", partial(self._start, placement))
            # The cancel may come right after the first look; the next one tells for certain.
            stop = self._step("look", partial(self._look, placement)) or self._look(placement)
            assert stop is not None, "its supervisor was never told of the cancel"
            self._end(placement, stop)

    def _step(self, name: str, work: Callable[[], Result]) -> Result:
        """Do a step; if it is the one that the cancel races, that begins right before it or in the midst of it."""
        if name != self.raced_step:
            began = time.monotonic()
            result = work()
            self._lengths_s[name] = time.monotonic() - began
            return result
        together = threading.Barrier(2)

        def cancel() -> None:
            together.wait()
            time.sleep(max(0.0, self._apart_s))
            with self.service.database.session_scope() as session:
                jobs.set_intent(session, self.job_id, Intent.CANCEL)

        cancelled = self._user.submit(cancel)
        together.wait()
        time.sleep(max(0.0, -self._apart_s))
        try:
            return work()
        finally:
            cancelled.result()

    def _start(self, placement: Placement) -> None:
        with self.service.database.session_scope() as session:
            attempts.set_running(session, placement, resumed_step=None)

    def _look(self, placement: Placement) -> Stop | None:
        with self.service.database.session_scope() as session:
            return stops.ordered(leases.renew(session, placement).orders, get_settings())

    def _end(self, placement: Placement, stop: Stop) -> None:
        with self.service.database.session_scope() as session:
            endings.end_placement(
                session,
                placement,
                completed=False,
                failure=stop.report.model_dump(mode="json"),
                spends_retry=not stop.in_order,
            )

    def assert_cancelled(self) -> None:
        """It ended once, and neither the planner nor a second supervisor begins it again."""
        assert self.service.plan() == []
        for placement in self.placements:
            with pytest.raises(StaleAttemptError):
                self.service.claim(placement, "2:2")
        ends = [to for _, to in self.service.moves(self.job_id) if to is not None and State(to).is_terminal]
        assert ends == [State.CANCELLED]
        assert self.service.state(self.job_id) == State.CANCELLED
        tried = self.service.attempts(self.job_id)
        assert [attempt.number for attempt in tried] == [each.attempt for each in self.placements]
        assert all(attempt.ended_at is not None for attempt in tried)
        with self.service.database.session_scope(read_only=True) as session:
            assert session.scalars(select(Lease.id).where(Lease.released_at.is_(None))).all() == []


def test_a_job_whose_cancel_races_its_claim_ends_cancelled_and_never_runs_again(
    service: Service, request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> None:
    races = request.config.getoption("--races")
    record_property("fault", fault_of(request.node.nodeid))
    record_property("repeats", races)
    draws = random.Random(f"{request.config.getoption('--seed')}/races/{service.database.is_sqlite}")
    raced: Counter[tuple[str, bool]] = Counter()
    lengths_s: dict[str, float] = {}
    with ThreadPoolExecutor(1, thread_name_prefix="user") as user:
        for _race in range(races):
            race = Race(service, draws, user, lengths_s)
            race.run()
            race.assert_cancelled()
            raced[race.raced_step, bool(race.placements)] += 1
    if races >= BOTH_COME_FIRST_FROM:
        assert {step for step, _ in raced} == set(STEPS)
        # At the other steps the job has its devices, whoever comes first.
        assert raced["plan", True], "no plan came before the cancel that it raced"
        assert raced["plan", False], "no cancel came before the plan that it raced"
