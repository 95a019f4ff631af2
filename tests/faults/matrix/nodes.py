"""A run of four ranks on two hosts whose supervisors die, one after the other."""

from collections.abc import Sequence

from jobs.states import State
from jobs.tables import Placement
from tests.faults.matrix.fault import Fault, Missed
from tests.faults.matrix.lane import TICK_S
from tests.faults.matrix.supervisors import kill_with_ranks
from tests.faults.matrix.trial import Trial
from tests.waiting import wait_until

ADDRESSES = {"north": "127.0.0.1", "south": "127.0.0.2"}
"""Of the two hosts, which share a run root: each can read what the other has saved."""
DEVICES = "2,3"
"""On both of them. No other standing host has any of these names, so they are where the job runs."""


def kill_each_supervisor(trial: Trial) -> None:
    """In an order and at instants drawn: each death costs one attempt on both hosts, and no work that was saved.

    Always digits: a program runs on one host only.
    """
    for name, address in ADDRESSES.items():
        run_root = trial.lane.folder / "shared-runs"
        trial.lane.worker(name, address=address, run_root=run_root, simulated_devices=4, tick_s=TICK_S)
    job_id = trial.submit(DEVICES, ranks=2, nodes=2)
    for attempt, node_rank in enumerate(trial.draws.sample([0, 1], 2), start=1):
        placements = _when_claimed(trial, job_id, attempt)
        trial.pause(trial.length_s / 2)  # the first may not use up all of the work
        if trial.lane.placements(job_id)[-1].ended_at is not None:
            raise Missed  # it was complete, though the job was not yet said to be over
        kill_with_ranks(trial, placements[node_rank])  # the ranks there die with it, and those on the other are ended
    trial.meanwhile.callback(_assert_attempts, trial, job_id)


def _when_claimed(trial: Trial, job_id: int, attempt: int) -> Sequence[Placement]:
    """The placements of the attempt, by node_rank, as soon as a supervisor on each host has claimed its own.

    Raises Missed if the job ends instead: what died before had done all of the work.
    """

    def placements() -> list[Placement]:
        return [each for each in trial.lane.placements(job_id) if each.attempt == attempt and each.supervisor]

    wait_until(
        lambda: len(placements()) == len(ADDRESSES) or State(trial.service.job(job_id).state).is_terminal,
        timeout_s=60,
        what=lambda: f"two supervisors of attempt {attempt}; {trial.service.story(job_id)}",
    )
    trial.look()
    return sorted(placements(), key=lambda each: each.node_rank)


def _assert_attempts(trial: Trial, job_id: int) -> None:
    numbers = [each.number for each in trial.service.attempts(job_id)]
    assert numbers[-1] <= len(ADDRESSES) + 1, trial.service.story(job_id)


FAULTS = (
    Fault("kill -9 of each supervisor of a run on two hosts", kill_each_supervisor, attempts=3, rounds=5, ddp_every=1),
)
