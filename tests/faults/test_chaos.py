"""The chaos run: many short jobs, submitted over HTTP, while faults of every kind strike the whole service at random.

`make chaos` runs a thousand; `make test` twenty. Nothing may be lost, doubled, or left over.
"""

import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from jobs.states import Outcome, State
from jobs.tables import Attempt, Job
from tests.faults.chaos import verdict
from tests.faults.chaos.storm import Storm
from tests.faults.chaos.strikes import STRIKES
from tests.faults.chaos.users import Users
from tests.faults.chaos.work import digits, make_work, program_of
from tests.faults.chaos.world import World
from tests.faults.matrix.table import fault_of
from tests.servers import PostgresServer, ValkeyServer

pytestmark = pytest.mark.timeout(3600)

LOOK_EVERY_S = 0.5
TELL_EVERY_S = 15
STORM_LASTS_S = 240
"""The most that the storm lasts, in seconds, and as much again as a job may take on average."""
LONGEST_JOB_S = 3
EACH_STRIKES_FROM = 300
"""Jobs under which every kind of strike must have come: the storm deals all of them before it repeats itself."""
FEW = 5
"""Jobs that are still open when it ends."""
ENDS_WITHIN_S = 180
"""How long after the storm the last job may be over, in seconds: it may rest, and wait for a lease to run out."""


@pytest.fixture
def world(postgres: PostgresServer, valkey: ValkeyServer, postgresql_url: str, tmp_path: Path) -> Iterator[World]:
    """The whole service, which runs."""
    with World(postgres, valkey, postgresql_url, tmp_path) as world:
        yield world


def test_no_job_is_lost_doubled_or_left_over_while_everything_breaks(
    world: World,
    request: pytest.FixtureRequest,
    record_property: Callable[[str, object], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    count = int(request.config.getoption("--chaos"))
    seed = f"{request.config.getoption('--seed')}/chaos"
    record_property("fault", fault_of(request.node.nodeid))
    record_property("repeats", count)
    work = make_work(count, random.Random(f"{seed}/work"))
    log = world.folder / "strikes.log"

    def tell(line: str) -> None:
        with capsys.disabled():
            sys.stdout.write(f"\n{line}")
            sys.stdout.flush()

    users = Users(world.api, work, random.Random(f"{seed}/users"))
    storm = Storm(
        world,
        users,
        STRIKES,
        draws=random.Random(f"{seed}/storm"),
        log=log,
        hold_scale=request.config.getoption("--hold-scale"),
    )
    run = Run(world, users, storm, tell)
    try:
        run.storm(until_s=STORM_LASTS_S + LONGEST_JOB_S * count)
        reference = run.settle()
        users.close()
        tell_of_attempts(world, storm.note)
        verdict.assert_all_is_well(world, users, work=work, reference=reference)
        assert storm.ended_by_themselves == []
        if count >= EACH_STRIKES_FROM:
            assert set(storm.counts) == {each.name for each in STRIKES}
    except BaseException as error:
        error.add_note(f"what struck when is in {log}, with seed {seed}")
        raise
    finally:
        users.close()
        storm.close()
    tell(f"{storm.counts.total()} strikes, {users.unanswered} submissions sent again:")
    for name, number in storm.counts.most_common():
        tell(f"{number:5} {name}")
    tell("attempts:")
    for end, number in ends(world).most_common():
        tell(f"{number:5} {end}")
    tell("")


def tell_of_attempts(world: World, note: Callable[[str], None]) -> None:
    """Note how each attempt ended that did not succeed, and when by the database's clock."""
    with world.service.database.session_scope(read_only=True) as session:
        for each in session.scalars(select(Attempt).order_by(Attempt.ended_at)):
            if each.outcome != Outcome.SUCCEEDED:
                times = f"{each.created_at:%X} to {each.ended_at:%X}"
                note(f"job {each.job_id}, attempt {each.number}, {times}: {_end_of(each)}")


def ends(world: World) -> Counter[str]:
    """How often attempts ended how."""
    with world.service.database.session_scope(read_only=True) as session:
        return Counter(map(_end_of, session.scalars(select(Attempt))))


def _end_of(attempt: Attempt) -> str:
    """The outcome of an attempt, and why it did not succeed."""
    if attempt.failure is None:
        return str(attempt.outcome)
    why, _, _more = str(attempt.failure.get("message")).partition("\n")
    return f"{attempt.outcome}: {why.rstrip(' :')}"


class Run:
    """The course of it, looked at again and again."""

    def __init__(self, world: World, users: Users, storm: Storm, tell: Callable[[str], None]) -> None:
        self._world = world
        self._users = users
        self._storm = storm
        self._tell = tell
        self._began = time.monotonic()
        self._looked_at = self._told_at = float("-inf")
        self._states: Counter[str] = Counter()

    def storm(self, *, until_s: float) -> None:
        """Have the storm rage while the users submit, and until most of what they submitted is over."""
        self._users.start()
        while self._users.is_alive() or len(self._users.open) > FEW:
            assert time.monotonic() - self._began < until_s, f"too slow: {self._progress()}"
            self._storm.turn()
            self._look()
            time.sleep(0.02)

    def settle(self) -> int:
        """Calm the storm, wait for the end of all jobs, and return a run that nothing struck, of digits if any are."""
        self._storm.calm()
        has_digits = any(each.steps is None for each in self._users.accepted.values())
        train = digits() if has_digits else program_of(1)
        reference = self._world.service.submit_exactly({"count": 2}, train=train)
        until = time.monotonic() + ENDS_WITHIN_S
        while self._users.open or not State(self._world.service.job(reference).state).is_terminal:
            assert time.monotonic() < until, "\n".join(map(self._world.service.story, sorted(self._users.open)))
            self._storm.see_that_all_runs()
            self._look(resume=True)
            time.sleep(LOOK_EVERY_S)
        return reference

    def _look(self, *, resume: bool = False) -> None:
        """See which jobs are over, and say so now and then; `resume` those that are paused."""
        if time.monotonic() - self._looked_at < LOOK_EVERY_S:
            return
        self._looked_at = time.monotonic()
        accepted = set(self._users.accepted)  # first: what is accepted meanwhile may not be among what is read
        try:
            with self._world.service.database.session_scope(read_only=True) as session:
                rows = session.execute(select(Job.id, Job.state, Job.failure)).all()
        except SQLAlchemyError:
            rows = None  # away, as it is to be
        if rows is not None:
            self._states = Counter(state for _, state, _ in rows)
            # A program that was interrupted has failed, by an exception of its own: its user tries it again.
            failed = [(id_, failure) for id_, state, failure in rows if state == State.FAILED]
            again = [id_ for id_, failure in failed if id_ in self._users.interrupted and _is_interrupt(failure)]
            over = {id_ for id_, state, _ in rows if State(state).is_terminal}.difference(again)
            self._users.open = frozenset(accepted - over)
            for job_id in again:
                self._users.retry(job_id)
            for job_id in [id_ for id_, state, _ in rows if resume and state == State.PAUSED]:
                self._users.resume(job_id)
        if self._looked_at - self._told_at > TELL_EVERY_S:
            self._told_at = self._looked_at
            self._tell(self._progress())

    def _progress(self) -> str:
        states = ", ".join(f"{number} {state}" for state, number in sorted(self._states.items()))
        strikes = self._storm.counts.total()
        return f"{time.monotonic() - self._began:5.0f} s: {strikes} strikes; {states or 'no job yet'}"


def _is_interrupt(failure: dict[str, Any] | None) -> bool:
    return failure is not None and failure.get("exception") == "builtins.KeyboardInterrupt"
