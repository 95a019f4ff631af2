"""Faults of servers: the broker forgets, repeats or goes away; the database goes away."""

import subprocess
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

from jobs.wakeups import PLAN, PLAN_QUEUE, make_celery
from tests.faults.matrix.echo import Echo
from tests.faults.matrix.fault import NEVER, Fault
from tests.faults.matrix.lane import LEASE_S
from tests.faults.matrix.ranks import ranks_of, wait_for_ranks
from tests.faults.matrix.trial import Trial
from tests.servers import PostgresServer
from tests.waiting import wait_until
from trainer.journal import CheckpointSaved, read_records
from trainer.run_dir import RunDir

FLUSHED_PACE_S = 0.4
FLUSHED_WITHIN_S = 5
"""Seconds from submission; a run at that pace then goes on for several ticks."""
BROKER_AWAY_S = 60
LISTENS_WITHIN_S = 60
"""A worker asks for its broker ever more seldom; meanwhile its tick does without."""
RIDES_OUT_PACE_S = 0.2
OUTLASTS_LEASE_PACE_S = 0.75
"""Seconds to a step, with which a run is not over when its supervisor has to end it."""
STRIKES_WITHIN_S = 6
"""Seconds from submission, or from when a run has a rank that its supervisor has to end, in which it is struck."""


def flush_broker(trial: Trial) -> None:
    """Whatever was to be woken by a message waits for a tick instead: one job runs, and nobody hears of the next.

    No worker takes the message of that before it is lost: all of them stand still meanwhile. A tick finds the job, and
    not only the message that comes when the other one ends.
    """
    valkey = trial.lane.valkey
    running = trial.submit("0", ranks=1, pace_s=FLUSHED_PACE_S, by=trial.lane.post)
    trial.pause(FLUSHED_WITHIN_S)
    with trial.lane.workers_stopped():
        wait_until(lambda: not valkey.listeners(), timeout_s=10, what="the last call of each worker to be answered")
        unheard = trial.submit("1", ranks=1, by=trial.lane.post)
        wait_until(lambda: valkey.waiting(PLAN_QUEUE), timeout_s=10, what="a message that can be lost")
        valkey.flushall()
    trial.struck()

    def assert_found_by_a_tick() -> None:
        claimed_at, ended_at = trial.service.placement(unheard).claimed_at, trial.service.job(running).finished_at
        assert claimed_at is not None
        assert ended_at is not None
        assert claimed_at < ended_at, trial.service.story(unheard)

    trial.meanwhile.callback(assert_found_by_a_tick)


def take_broker_away(trial: Trial) -> None:
    """Jobs from before and from during the outage run by the ticks; then the workers listen again."""
    trial.submit("0", ranks=1, by=trial.lane.post)
    trial.pause(trial.length_s)
    trial.lane.valkey.kill()
    submitted_after_s = trial.draw(BROKER_AWAY_S)
    trial.hold(submitted_after_s)
    trial.submit("0", ranks=1, by=trial.lane.post)
    trial.hold(BROKER_AWAY_S - submitted_after_s)
    trial.lane.valkey.start()
    trial.struck()
    with make_celery(trial.lane.valkey.url) as broker:
        broker.send_task(PLAN, args=[0], queue=PLAN_QUEUE)
    wait_until(lambda: not trial.lane.valkey.waiting(PLAN_QUEUE), timeout_s=LISTENS_WITHIN_S, what="workers to listen")


def echo_wake_ups(trial: Trial) -> None:
    """Whoever is woken looks what there is to do: two jobs are planned, launched and ended once each."""
    echo = Echo(trial.lane.valkey.url, trial.draws, within_s=10)
    echo.start()
    trial.meanwhile.callback(echo.close)
    for _job in range(2):
        trial.submit(ranks=1, by=trial.lane.post)
    trial.struck()


def take_database_away(trial: Trial, *, away_s: float, is_killed: bool) -> None:
    """Training goes on without it; a supervisor that cannot renew ends its ranks before its lease does."""
    outlasts_lease = away_s * trial.hold_scale > LEASE_S
    job_id = trial.submit(pace_s=OUTLASTS_LEASE_PACE_S if outlasts_lease else RIDES_OUT_PACE_S)
    if outlasts_lease:
        wait_for_ranks(trial, job_id, count=2)
    trial.pause(STRIKES_WITHIN_S)
    placement = trial.service.placement(job_id) if outlasts_lease else None
    _take_away(trial.lane.postgres, is_killed=is_killed)
    if placement is not None:
        assert len(ranks_of(placement)) == 2, "there is no rank that would have to be ended"
        time.sleep(LEASE_S)
        ranks = [each for each in trial.service.processes() if each.run_dir]
        assert not ranks, f"alive beyond their lease: {ranks}"
        run_dir = RunDir(Path(placement.run_dir))
        assert run_dir.completed() is None, "the run came to its end by itself"
        trial.meanwhile.callback(_assert_resumed, trial, job_id, _saved_step(run_dir))
        time.sleep(away_s * trial.hold_scale - LEASE_S)
    else:
        trial.hold(away_s)
    trial.lane.postgres.start()
    trial.struck()


def _take_away(postgres: PostgresServer, *, is_killed: bool) -> None:
    """Where it does not stop in order, with a client that takes no answer, it is killed, as an init system does."""
    if not is_killed:
        with suppress(subprocess.TimeoutExpired):
            postgres.stop(mode="fast")
    postgres.kill()


def _saved_step(run_dir: RunDir) -> int:
    journal = run_dir.journal
    records = read_records(journal) if journal.exists() else []
    return max((each.step for each in records if isinstance(each, CheckpointSaved)), default=0)


def _assert_resumed(trial: Trial, job_id: int, saved_step: int) -> None:
    """What the database was told only after the outage, that so much is saved, is what the job goes on from."""
    anew = [each.step for each in trial.service.metrics(job_id) if each.attempt > 1]
    assert min(anew, default=saved_step + 1) > saved_step, f"step {saved_step} was saved; {trial.service.story(job_id)}"


FAULTS = (
    Fault("FLUSHALL of the broker", flush_broker, ddp_every=NEVER),
    Fault("broker down for 60 s", take_broker_away),
    Fault("each wake-up delivered 100 times", echo_wake_ups),
    *(
        Fault(
            f"PostgreSQL {how} for {away_s} s",
            partial(take_database_away, away_s=away_s, is_killed=how == "kill -9"),
            attempts=2,
            outlasts_lease=True,
            # A training has no pace that it could be told to keep, and must not be over before its lease is.
            ddp_every=NEVER if away_s > LEASE_S else 10,
        )
        for how in ("fast stop", "kill -9")
        for away_s in (10, 40)
    ),
)
