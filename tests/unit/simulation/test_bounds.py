"""The bound on a wait, with the figures of a stream."""

from jobs.device_count import DeviceCount
from jobs.planner.bounds import longest_wait_s, passed_for_s
from jobs.planner.request import Request
from jobs.planner.view import Policy, Reservation, Start, Wait, WaitingJob
from jobs.simulation.bounds import Bounds
from jobs.simulation.stream import StreamJob

ONE = Request(device=DeviceCount(count=1), per_node=1)
POLICY = Policy(ageing_s=1, fair_share_s=0)
PRIORITY = 50
ALONE = passed_for_s(PRIORITY, POLICY)
"""When nobody new comes before a job of that priority that is submitted at 0."""


def waiting(job_id: int) -> WaitingJob:
    return WaitingJob(job_id, PRIORITY, 0.0, ONE)


def wait(job_id: int, reservation: Reservation | None = None) -> Wait:
    return Wait(job_id, "waits", float(job_id), reservation=reservation)


def bounds() -> Bounds:
    """Those of a stream in which every run lasts 10 s, with jobs 1 and 2 in the line."""
    made = Bounds([StreamJob(submitted_s=0, runs_s=10, request=ONE)], POLICY, slack_s=0)
    for job_id in (1, 2):
        made.arrive(waiting(job_id))
    return made


def bound_s(*, ahead: int, foretold_s: float = 0.0) -> float:
    return longest_wait_s(PRIORITY, POLICY, ahead=ahead, foretold_s=foretold_s, run_s=10)


def test_the_farthest_start_that_is_foretold_counts() -> None:
    made = bounds()
    made.note(ALONE, [wait(1, Reservation((1,), ALONE + 7)), wait(2, Reservation((2,), ALONE + 5))])

    assert made.of(waiting(1)) == bound_s(ahead=0, foretold_s=7)


def test_a_reservation_whose_start_is_not_known_foretells_nothing() -> None:
    made = bounds()
    made.note(ALONE, [wait(1, Reservation((1,)))])

    assert made.of(waiting(1)) == bound_s(ahead=0)


def test_each_start_of_one_before_it_counts_and_each_time_that_one_comes_back() -> None:
    made = bounds()
    made.note(ALONE, [Start(1, ()), wait(2)])
    made.come_back(1)
    made.note(ALONE + 1, [wait(1), wait(2)])
    made.note(ALONE + 2, [Start(1, ()), wait(2)])

    assert made.of(waiting(2)) == bound_s(ahead=3)
