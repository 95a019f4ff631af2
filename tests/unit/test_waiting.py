"""wait_until returns what it waited for, or says what did not happen."""

import pytest

from tests.waiting import wait_until


def test_it_returns_the_first_truthy_value() -> None:
    values = iter([0, "", None, "here"])
    assert wait_until(lambda: next(values), timeout_s=5, what="a value", interval_s=0) == "here"


def test_a_condition_that_never_holds_fails_with_what_was_waited_for_and_what_was_seen() -> None:
    with pytest.raises(AssertionError, match=r"waited 0 s for the job to end; the last value seen was \[\]"):
        wait_until(list, timeout_s=0, what="the job to end")


def test_the_description_is_made_at_the_time_of_failure() -> None:
    seen: list[int] = []
    with pytest.raises(AssertionError, match="three, after 1 looks"):
        wait_until(lambda: seen.append(1), timeout_s=0, what=lambda: f"three, after {len(seen)} looks")


def test_an_error_in_the_condition_is_not_swallowed() -> None:
    with pytest.raises(ZeroDivisionError):
        wait_until(lambda: 1 / 0, timeout_s=5, what="never")
