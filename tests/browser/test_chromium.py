"""Where the tests of the dashboard take their Chromium from."""

import re
from pathlib import Path

import pytest

from tests.browser.chromium import NoChromium, Way, find_chromium, from_playwright, on_path


def program(path: Path, *, status: int = 0) -> Path:
    """Write a program that ends with this status."""
    path.write_text(f"#!/bin/sh\nexit {status}\n")
    path.chmod(0o755)
    return path


def refusal(reason: str) -> Path:
    raise NoChromium(reason)


def test_the_first_way_that_leads_to_one_is_taken_and_none_after_it(tmp_path: Path) -> None:
    found = tmp_path / "chromium"
    untried = Way("third", lambda: pytest.fail("this way is not needed"))
    assert find_chromium([Way("first", lambda: refusal("not here")), Way("second", lambda: found), untried]) == found


def test_where_no_way_leads_to_one_each_is_named_with_its_reason_and_what_to_do() -> None:
    ways = [Way("on PATH", lambda: refusal("no chromium")), Way("apt-get", lambda: refusal("only root may"))]
    with pytest.raises(NoChromium, match=r"(?s)on PATH: no chromium\n  apt-get: only root may\n.*Install one"):
        find_chromium(ways)


def test_one_on_path_is_taken_by_any_of_its_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoChromium, match="no chromium, no chromium-browser, no google-chrome"):
        on_path()
    chrome = program(tmp_path / "google-chrome")
    assert on_path() == chrome
    chromium = program(tmp_path / "chromium")
    assert on_path() == chromium


def test_a_program_on_path_that_does_not_run_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    stub = program(tmp_path / "chromium-browser", status=1)
    with pytest.raises(NoChromium, match=re.escape(f"{stub} does not run")):
        on_path()
    chrome = program(tmp_path / "google-chrome")
    assert on_path() == chrome


def test_what_playwright_has_already_is_not_fetched_again(tmp_path: Path) -> None:
    kept = program(tmp_path / "chrome")
    assert from_playwright(kept, ["false"]) == kept


def test_what_playwright_lacks_is_fetched(tmp_path: Path) -> None:
    source, kept = program(tmp_path / "source"), tmp_path / "chrome"
    assert from_playwright(kept, ["cp", str(source), str(kept)]) == kept


def test_a_fetch_that_fails_says_why_in_a_line(tmp_path: Path) -> None:
    with pytest.raises(NoChromium, match="failed: no network"):
        from_playwright(tmp_path / "chrome", ["sh", "-c", "echo first >&2; echo no network >&2; exit 1"])
