"""The bound on how long a job waits; docs/planning.md has the proof."""

from jobs.planner.order import MOST_PRIORITY
from jobs.planner.view import Policy


def passed_for_s(priority: int, policy: Policy) -> float:
    """Seconds of waiting after which nobody who comes later gets before a job any more."""
    return (MOST_PRIORITY - priority) * policy.ageing_s + policy.fair_share_s


def longest_wait_s(priority: int, policy: Policy, *, ahead: int, foretold_s: float, run_s: float) -> float:
    """Seconds that a job waits at most, gang or not, while its hosts are open and its quotas have room.

    `ahead` counts, once nobody new can come before it, the starts of jobs that are before it in the line, and how often
    one comes back to such a place: one that was stopped, or has rested. `foretold_s` is the longest time from a
    plan to a reservation's start that it foretold, `run_s` the longest run.
    """
    return passed_for_s(priority, policy) + (ahead + 1) * (foretold_s + 2 * run_s)
