"""What the tests of the dashboard notice in a page, by themselves."""

from pathlib import Path

import pytest
from playwright.sync_api import Error

from tests.browser.dashboard import assert_built
from tests.browser.visits import Visit, Visits


def problem_after(visit: Visit, script: str) -> str:
    """Return the one problem that a script brings, and forget it."""
    visit.page.evaluate(script)
    (problem,) = visit.watch.problems
    visit.watch.problems.clear()
    return problem


def test_a_warning_an_error_and_a_refusal_are_noticed(visits: Visits) -> None:
    visit = visits.by(None)
    visit.open("/").get_by_role("heading", name="Sign in").wait_for()
    assert "warning on the console: careful" in problem_after(visit, "console.warn('careful')")
    assert "error on the console: broken" in problem_after(visit, "console.error('broken')")
    assert "answer 401: GET" in problem_after(visit, "fetch('/jobs').then(() => true)")


def test_an_exception_that_nobody_catches_is_noticed(visits: Visits) -> None:
    visit = visits.by(None)
    visit.open("/").get_by_role("heading", name="Sign in").wait_for()
    with visit.context.expect_event("weberror"):
        visit.page.evaluate("setTimeout(() => { throw new Error('lost') }, 0)")
    (problem,) = visit.watch.problems
    visit.watch.problems.clear()
    assert "lost" in problem


def test_a_request_to_a_foreign_origin_is_noticed_and_the_policy_of_the_page_stops_it(visits: Visits) -> None:
    visit = visits.by(None)
    visit.open("/").get_by_role("heading", name="Sign in").wait_for()
    visit.page.evaluate("fetch('http://127.0.0.1:9/').catch(() => true)")
    assert "Content Security Policy" in "\n".join(visit.watch.problems)
    visit.watch.problems.clear()
    with pytest.raises(Error, match="ERR_"):
        visit.page.goto("http://127.0.0.1:9/")
    assert visit.watch.problems[0] == "request to a foreign origin: GET http://127.0.0.1:9/"
    visit.watch.problems.clear()


def test_what_was_expected_and_never_came_fails_a_test(visits: Visits) -> None:
    visit = visits.by(None)
    visit.watch.expects(401, "/me")
    with pytest.raises(AssertionError, match="expected and never came: 401 of /me"):
        visit.watch.assert_clean()
    visit.open("/").evaluate("fetch('/me').then(() => true)")


def test_a_dashboard_that_is_missing_is_told_with_the_command_that_builds_it(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"not built .*; build it by: make dashboard"):
        assert_built(tmp_path)
