"""The tests are tested: a law of the service that is switched off, in its real processes, breaks a trial.

Each trial is judged as those of the matrix are, which are whole with the law: without it, one breaks by what the law
says.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from jobs.store import maintenance
from tests.children import first_on_path
from tests.faults.matrix.fault import Fault
from tests.faults.matrix.lane import Lane
from tests.faults.matrix.trial import Trial
from tests.faults.switched_off import program
from tests.proxy import Proxy
from tests.servers import PostgresServer, ValkeyServer
from tests.service import is_running
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(240)

PACE_S = 0.1
"""A step takes twice as long as in the matrix: what strikes in its middle finds it going on."""
TOGETHER = "had processes at the same time"
LAWS = Path(__file__).parent / "switched_off"

StartLane = Callable[[type[Lane]], Lane]


class LaneOfParents(Lane):
    """Its jobs leave children behind."""

    def spec(self, device: object, *, is_ddp: bool, **settings: Any) -> dict[str, Any]:
        spec = super().spec(device, is_ddp=is_ddp, **settings)
        spec["train"]["options"]["script"] = program.__file__
        return spec


@pytest.fixture
def start_lane(
    postgres: PostgresServer, valkey: ValkeyServer, migrated_postgres_template: str, tmp_path: Path
) -> Iterator[StartLane]:
    """Starts a lane that no other test is to find again, with no worker yet."""
    with ExitStack() as closing:

        def start(kind: type[Lane]) -> Lane:
            lane = kind(postgres, valkey, migrated_postgres_template, tmp_path)
            closing.callback(lane.close)
            return lane

        yield start


def without(law: str) -> tuple[str, ...]:
    """The command that starts another one with a law switched off."""
    return first_on_path(LAWS / law)


def judged(lane: Lane, strike: Callable[[Trial], None]) -> Trial:
    """Strike, and let everything end; the trial is to be judged."""
    fault = Fault("a law switched off", strike, attempts=2, outlasts_lease=True)
    trial = Trial(lane, fault, number=1, seed="a law switched off", hold_scale=1)
    strike(trial)
    trial.finish()
    return trial


def test_without_fencing_a_host_that_was_cut_off_writes_for_its_ended_attempt(start_lane: StartLane) -> None:
    lane = start_lane(Lane)

    def strike(trial: Trial) -> None:
        lane.worker("alpha")
        lane.worker("cut", database_url=way.url, inside=without("fencing"))
        with trial.service.database.session_scope() as session:
            maintenance.drain(session, "alpha")
        job_id = trial.submit(ranks=1, pace_s=PACE_S)
        trial.service.wait_for_step(job_id, 1)
        supervisor = trial.service.supervisor_pid(job_id)
        trial.pause(0.5)
        # Its worker must not be there to kill the supervisor of an attempt that has ended.
        lane.dismiss("cut")
        with way.silent():
            lane.worker("alpha")  # which takes it back
            wait_until(
                lambda: any(each.attempt == 2 for each in trial.service.checkpoints(job_id)),
                timeout_s=90,
                what=lambda: f"a checkpoint of the next attempt; {trial.service.story(job_id)}",
            )
        trial.struck()
        wait_until(lambda: not is_running(supervisor), timeout_s=30, what="the supervisor that was cut off to leave")

    with Proxy(lane.database_url) as way:
        trial = judged(lane, strike)

    with pytest.raises(AssertionError, match=r"assert_no_stale_attempt_wrote: .*(came after|out of order)"):
        trial.assert_laws_held()


def test_without_exclusive_leases_two_jobs_have_one_device(start_lane: StartLane) -> None:
    lane = start_lane(Lane)
    with lane.service.database.session_scope() as session:
        session.execute(text("DROP INDEX uq_leases_live_device"))
    lane.worker("alpha", inside=without("exclusive_leases"))
    job_ids: list[int] = []

    def strike(trial: Trial) -> None:
        job_ids.extend(trial.submit("0", ranks=1, pace_s=PACE_S) for _ in range(2))
        trial.service.wait_for_step(job_ids[0], 1)
        trial.pause(0.5)
        os.kill(trial.service.supervisor_pid(job_ids[0]), signal.SIGKILL)
        trial.struck()

    trial = judged(lane, strike)

    with pytest.raises(AssertionError, match="two leases on device"):
        trial.assert_laws_held()
    with pytest.raises(AssertionError, match=f"{TOGETHER} on cuda:0 of alpha"):
        lane.watch.assert_nothing_ran_beside([each for job_id in job_ids for each in lane.placements(job_id)])


def test_without_proof_of_death_a_child_of_a_lost_attempt_lives_beside_the_next_one(start_lane: StartLane) -> None:
    lane = start_lane(LaneOfParents)
    lane.worker("alpha", inside=without("proof_of_death"))
    job_ids: list[int] = []

    def strike(trial: Trial) -> None:
        job_id = trial.submit(ranks=1, pace_s=PACE_S)
        job_ids.append(job_id)
        trial.service.wait_for_step(job_id, 1)
        trial.pause(0.5)
        os.kill(trial.service.supervisor_pid(job_id), signal.SIGKILL)
        trial.struck()

    # A child that is marked as a supervisor's is killed as a stray some time later: it may be gone in time.
    with pytest.raises(AssertionError, match=f"{TOGETHER}|has ended, but not"):
        judged(lane, strike).assert_laws_held()
    with pytest.raises(AssertionError, match=TOGETHER):
        lane.watch.assert_nothing_ran_beside(lane.placements(job_ids[0]))
