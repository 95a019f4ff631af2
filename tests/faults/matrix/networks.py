"""Faults of a host's network: the guest's cable is pulled, for longer than its lease or for less."""

import time
from datetime import UTC, datetime
from pathlib import Path

from jobs.states import State
from jobs.store import maintenance
from tests.faults.matrix import guest
from tests.faults.matrix.fault import NEVER, Fault
from tests.faults.matrix.ranks import wait_for_ranks
from tests.faults.matrix.trial import Trial
from tests.waiting import wait_until
from trainer.process_identity import is_alive
from trainer.run_dir import RunDir
from worker.processes import marked_processes

LONG_S, SHORT_S = 25, 5
"""The lease is 15 seconds."""
SLOW_PACE_S = 1.0
CUT_WITHIN_S = 10
"""Seconds from the start of a rank: a program at that pace then has twice as much left to do as its lease lasts."""


def cut_off_for_long(trial: Trial) -> None:
    """Its ranks are dead before the lease is over, so before anybody else is given the job, which goes on elsewhere.

    Recovery counts from the cut. Once the cable is back the host reports, and takes work.
    """
    host = trial.lane.guest()
    trial.meanwhile.enter_context(host.open())
    job_id = _submit_to_guest(trial)
    trial.pause(CUT_WITHIN_S)
    cut_at = time.monotonic()
    supervisor = trial.service.placement(job_id).supervisor
    assert supervisor is not None
    trial.standing.add(int(supervisor.partition(":")[0]))  # it tells of the end of its ranks, for as long as that takes
    trial.meanwhile.callback(_takes_work, trial, host)
    trial.meanwhile.callback(
        wait_until, lambda: not is_alive(supervisor), timeout_s=30, what="the supervisor to leave once it is heard"
    )
    trial.meanwhile.enter_context(host.cut_off())
    trial.meanwhile.callback(lambda: time.sleep(max(0.0, cut_at + LONG_S - time.monotonic())))
    trial.struck()
    _assert_ranks_end_before_the_lease(trial, job_id)


def cut_off_for_a_while(trial: Trial) -> None:
    """An outage shorter than the lease: the same attempt goes on."""
    host = trial.lane.guest()
    trial.meanwhile.enter_context(host.open())
    job_id = trial.submit({"count": 1, "host": guest.NAME}, ranks=1)
    trial.pause(trial.length_s)
    with host.cut_off():
        trial.hold(SHORT_S)
    trial.struck()
    trial.meanwhile.callback(trial.assert_went_on, job_id)


def _submit_to_guest(trial: Trial) -> int:
    """Submit a job that begins on the guest and may go on elsewhere, and return once it has a rank there."""
    _set_alpha(trial, drained=True)
    job_id = trial.submit(ranks=1, pace_s=SLOW_PACE_S)
    wait_for_ranks(trial, job_id, count=1)  # cut off any sooner, it would have none to end
    _set_alpha(trial, drained=False)
    return job_id


def _set_alpha(trial: Trial, *, drained: bool) -> None:
    with trial.service.database.session_scope() as session:
        if drained:
            maintenance.drain(session, "alpha", note="the guest's turn")
        else:
            maintenance.take_back(session, "alpha")


def _assert_ranks_end_before_the_lease(trial: Trial, job_id: int) -> None:
    """Wait for the end of the lease of the attempt that is cut off: the database has this machine's clock."""
    (lease,) = trial.service.leases(job_id, 1)  # its last word: it is not renewed any more
    while lease.released_at is None and (left_s := (lease.expires_at - datetime.now(UTC)).total_seconds()) > 0:
        time.sleep(min(left_s, 0.1))
        (lease,) = trial.service.leases(job_id, 1)
    run_dir = trial.lane.placements(job_id)[0].run_dir
    assert run_dir not in {each.run_dir for each in marked_processes()}, "ranks outlived the lease of a host cut off"
    assert RunDir(Path(run_dir)).completed() is None, (
        "the run came to its end by itself, as nothing may that is cut off"
    )


def _takes_work(trial: Trial, host: guest.Guest) -> None:
    """The guest, which is reached again, reports and trains."""
    host.wait_until_it_reports()
    job_id = trial.lane.submit({"count": 1, "host": guest.NAME}, is_ddp=False)
    trial.service.wait_for(job_id, State.SUCCEEDED)


FAULTS = (
    Fault(
        f"host cut off the network for {LONG_S} s, longer than its lease",
        cut_off_for_long,
        attempts=2,
        outlasts_lease=True,
        ddp_every=NEVER,  # it has no pace, and must not be over before its ranks have to be
    ),
    Fault(f"host cut off the network for {SHORT_S} s", cut_off_for_a_while),
)
