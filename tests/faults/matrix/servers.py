"""Faults of servers: the broker forgets, repeats or goes away; the database goes away."""

from functools import partial
from pathlib import Path

from jobs.wakeups import PLAN, PLAN_QUEUE, make_celery
from tests.faults.matrix.echo import Echo
from tests.faults.matrix.fault import Fault
from tests.faults.matrix.lane import LEASE_S
from tests.faults.matrix.trial import Trial
from tests.waiting import wait_until
from trainer.journal import CheckpointSaved, read_records
from trainer.run_dir import RunDir

BROKER_AWAY_S = 60
LISTENS_WITHIN_S = 60
"""A worker asks for its broker ever more seldom; meanwhile its tick does without."""
OUTLASTS_LEASE_PACE_S = 0.4
"""Seconds to a step, with which a run is not over when its supervisor has to end it."""
STRIKES_WITHIN_S = 6
"""Seconds from submission in which such a run is struck."""


def flush_broker(trial: Trial) -> None:
    """Whatever was to be woken by a message waits for a tick instead: one job runs, one waits for its device."""
    for _job in range(2):
        trial.submit("0", ranks=1, by=trial.lane.post)
    trial.pause(2 * trial.length_s)
    trial.lane.valkey.flushall()
    trial.struck()


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
    job_id = trial.submit(pace_s=OUTLASTS_LEASE_PACE_S)
    trial.pause(STRIKES_WITHIN_S)
    if is_killed:
        trial.lane.postgres.kill()
    else:
        trial.lane.postgres.stop(mode="fast")
    ridden_out_s = min(away_s, LEASE_S)
    trial.hold(ridden_out_s)
    if trial.hold_scale == 1 and away_s > LEASE_S:
        ranks = [each for each in trial.service.processes() if each.run_dir]
        assert not ranks, f"alive beyond their lease: {ranks}"
        if (run_dir := trial.run_dirs.get(job_id)) is not None:
            trial.meanwhile.callback(_assert_resumed, trial, job_id, _saved_step(run_dir))
    trial.hold(away_s - ridden_out_s)
    trial.lane.postgres.start()
    trial.struck()


def _saved_step(run_dir: Path) -> int:
    journal = RunDir(run_dir).journal
    records = read_records(journal) if journal.exists() else []
    return max((each.step for each in records if isinstance(each, CheckpointSaved)), default=0)


def _assert_resumed(trial: Trial, job_id: int, saved_step: int) -> None:
    """What the database was told only after the outage, that so much is saved, is what the job goes on from."""
    anew = [each.step for each in trial.service.metrics(job_id) if each.attempt > 1]
    assert min(anew, default=saved_step + 1) > saved_step, f"step {saved_step} was saved; {trial.service.story(job_id)}"


FAULTS = (
    Fault("FLUSHALL of the broker", flush_broker),
    Fault("broker down for 60 s", take_broker_away),
    Fault("each wake-up delivered 100 times", echo_wake_ups),
    *(
        Fault(
            f"PostgreSQL {how} for {away_s} s", partial(take_database_away, away_s=away_s, is_killed=how == "kill -9")
        )
        for how in ("fast stop", "kill -9")
        for away_s in (10, 40)
    ),
)
