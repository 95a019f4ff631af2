"""What the end of an attempt means, for every cause and every intent, and whose failure is the first."""

from datetime import UTC, datetime, timedelta

import pytest

from jobs.outcomes import INFRASTRUCTURE, Failure, backoff_s, conclude, first_failure
from jobs.states import Intent, Outcome, StopOrder
from trainer.errors import Cause


@pytest.mark.parametrize("intent", Intent)
@pytest.mark.parametrize("cause", Cause)
def test_a_completion_record_is_a_success_whatever_else_is_said(cause: Cause, intent: Intent) -> None:
    assert conclude(completed=True, cause=cause, intent=intent) is Outcome.SUCCEEDED


@pytest.mark.parametrize("cause", Cause)
def test_without_a_completion_record_there_is_no_success(cause: Cause) -> None:
    assert all(conclude(completed=False, cause=cause, intent=intent) is not Outcome.SUCCEEDED for intent in Intent)


@pytest.mark.parametrize("cause", Cause)
def test_a_job_that_was_to_be_cancelled_is_cancelled_whatever_it_ended_of(cause: Cause) -> None:
    assert conclude(completed=False, cause=cause, intent=Intent.CANCEL) is Outcome.CANCELLED


@pytest.mark.parametrize(
    ("cause", "outcome"),
    [
        (Cause.CONFIG, Outcome.FAILED),
        (Cause.DATA, Outcome.FAILED),
        (Cause.CHECKPOINT, Outcome.FAILED),
        (Cause.NON_FINITE_LOSS, Outcome.FAILED),
        (Cause.OUT_OF_MEMORY, Outcome.FAILED),
        (Cause.EXCEPTION, Outcome.FAILED),
        (Cause.TIME_LIMIT, Outcome.FAILED),
        (Cause.DEVICE, Outcome.LOST),
        (Cause.HANG, Outcome.LOST),
        (Cause.DISK_FULL, Outcome.LOST),
        (Cause.COMMUNICATION, Outcome.LOST),
        (Cause.KILLED_BY_SIGNAL, Outcome.LOST),
        (Cause.LOST, Outcome.LOST),
        (Cause.INTERRUPTED, Outcome.LOST),
    ],
)
def test_a_fault_of_the_training_fails_and_one_of_the_infrastructure_is_lost(cause: Cause, outcome: Outcome) -> None:
    assert conclude(completed=False, cause=cause, intent=Intent.RUN) is outcome


def test_every_cause_is_decided_on_above() -> None:
    parametrized = test_a_fault_of_the_training_fails_and_one_of_the_infrastructure_is_lost.pytestmark[0]  # type: ignore[attr-defined]  # set by pytest
    assert {cause for cause, _ in parametrized.args[1]} == set(Cause)


@pytest.mark.parametrize("cause", sorted(INFRASTRUCTURE))
def test_a_job_that_was_to_be_paused_is_paused_when_its_run_stops(cause: Cause) -> None:
    assert conclude(completed=False, cause=cause, intent=Intent.PAUSE) is Outcome.PAUSED


@pytest.mark.parametrize("cause", sorted(set(Cause) - INFRASTRUCTURE))
def test_a_fault_of_the_training_is_not_hidden_by_a_pause(cause: Cause) -> None:
    assert conclude(completed=False, cause=cause, intent=Intent.PAUSE) is Outcome.FAILED


@pytest.mark.parametrize("order", [StopOrder.PREEMPTED, StopOrder.DRAINED])
@pytest.mark.parametrize("cause", sorted(INFRASTRUCTURE))
def test_an_attempt_that_the_service_told_to_save_and_stop_is_preempted(cause: Cause, order: StopOrder) -> None:
    assert conclude(completed=False, cause=cause, intent=Intent.RUN, order=order) is Outcome.PREEMPTED


@pytest.mark.parametrize(("intent", "outcome"), [(Intent.CANCEL, "cancelled"), (Intent.PAUSE, "paused")])
def test_what_the_user_wants_comes_before_what_the_service_does(intent: Intent, outcome: str) -> None:
    assert conclude(completed=False, cause=Cause.INTERRUPTED, intent=intent, order=StopOrder.PREEMPTED) == outcome


def test_an_attempt_whose_peers_ended_is_lost() -> None:
    ended = conclude(completed=False, cause=Cause.INTERRUPTED, intent=Intent.RUN, order=StopOrder.PEER_ENDED)
    assert ended is Outcome.LOST


START = datetime(2026, 3, 1, tzinfo=UTC)


def failure(node_rank: int, cause: Cause, *, after_s: float, spends_retry: bool = True) -> Failure:
    at = START + timedelta(seconds=after_s)
    return Failure(node_rank, {"cause": cause, "time": at.isoformat()}, spends_retry, at)


@pytest.mark.parametrize("cause", sorted(set(Cause) - {Cause.COMMUNICATION, Cause.INTERRUPTED}))
def test_of_several_nodes_the_one_at_fault_is_told_though_its_peers_were_heard_of_first(cause: Cause) -> None:
    peers = [failure(0, Cause.COMMUNICATION, after_s=0), failure(2, Cause.INTERRUPTED, after_s=0)]
    at_fault = failure(1, cause, after_s=5)

    assert first_failure([*peers, at_fault]) is at_fault


def test_of_two_nodes_at_fault_the_first_is_told() -> None:
    late, early = failure(0, Cause.EXCEPTION, after_s=2), failure(1, Cause.OUT_OF_MEMORY, after_s=1)

    assert first_failure([late, early]) is early


def test_a_host_that_was_shut_down_in_order_is_told_rather_than_the_peers_that_it_left() -> None:
    lost_it = failure(0, Cause.COMMUNICATION, after_s=0)
    stopped_with_it = failure(1, Cause.INTERRUPTED, after_s=0)
    shut_down = failure(2, Cause.INTERRUPTED, after_s=1, spends_retry=False)

    assert first_failure([lost_it, stopped_with_it, shut_down]) is shut_down


def test_no_failure_at_all_is_told_as_none() -> None:
    assert first_failure([]) is None


def test_a_job_rests_twice_as_long_after_each_further_loss_up_to_the_longest_rest() -> None:
    assert [backoff_s(losses, first_s=10, longest_s=60) for losses in (1, 2, 3, 4, 5000)] == [10, 20, 40, 60, 60]
