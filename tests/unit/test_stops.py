"""Orders to stop: what a supervisor makes of what its user and the service want of a placement."""

import pytest

from jobs.settings import Settings
from jobs.states import Intent, StopOrder
from jobs.store.leases import Orders
from trainer.errors import Cause
from worker import stops

SETTINGS = Settings(stop_grace_s=5, checkpoint_grace_s=30)


def test_a_run_that_nobody_wants_to_stop_goes_on() -> None:
    assert stops.ordered(Orders(), SETTINGS) is None


@pytest.mark.parametrize(
    ("orders", "message", "grace_s"),
    [
        (Orders(Intent.CANCEL), "cancelled", 5),
        (Orders(Intent.PAUSE), "paused", 30),
        (Orders(stop=StopOrder.PREEMPTED, stop_message="preempted by job 7"), "preempted by job 7", 30),
        (Orders(stop=StopOrder.DRAINED, stop_message="host alpha is drained"), "host alpha is drained", 30),
    ],
)
def test_an_order_says_why_and_how_long_the_ranks_have_and_costs_no_retry(
    orders: Orders, message: str, grace_s: float
) -> None:
    stop = stops.ordered(orders, SETTINGS)

    assert stop is not None
    assert (stop.report.cause, stop.report.message) == (Cause.INTERRUPTED, message)
    assert (stop.grace_s, stop.in_order) == (grace_s, True)


def test_a_run_whose_peer_ended_has_nothing_to_save_and_leaves_the_retry_to_that_peer() -> None:
    stop = stops.ordered(Orders(stop=StopOrder.PEER_ENDED, stop_message="node 1 (beta) has ended"), SETTINGS)

    assert stop is not None
    assert (stop.report.message, stop.grace_s, stop.in_order) == ("node 1 (beta) has ended", 5, False)


@pytest.mark.parametrize(("intent", "message"), [(Intent.CANCEL, "cancelled"), (Intent.PAUSE, "paused")])
@pytest.mark.parametrize("order", StopOrder)
def test_what_the_user_wants_comes_before_what_the_service_does(intent: Intent, message: str, order: StopOrder) -> None:
    stop = stops.ordered(Orders(intent, order, "the service's own reason"), SETTINGS)

    assert stop is not None
    assert stop.report.message == message
