"""What the end of an attempt means, for every cause and every intent."""

import pytest

from jobs.outcomes import INFRASTRUCTURE, conclude
from jobs.states import Intent, Outcome
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
