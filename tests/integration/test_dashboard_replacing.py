"""`/ui/` while the dashboard is built: from none to one, from one to the next, and one that is damaged."""

import re
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from api.dashboard import GUARDS
from tests.integration.conftest import copy_of_sqlite
from tests.integration.served_dashboard import BROWSER, PAGE, Serving, script_of
from tests.waiting import wait_until


@pytest.fixture
def own_api(migrated_sqlite_template: Path, tmp_path: Path) -> Iterator[Serving]:
    """One that has no dashboard yet."""
    with Serving(copy_of_sqlite(migrated_sqlite_template, tmp_path), tmp_path) as server:
        yield server


def test_a_build_that_is_missing_is_told_of_until_it_is_there_with_no_restart(own_api: Serving) -> None:
    missing = own_api.http.get("/ui/jobs", headers=BROWSER)
    assert (missing.status_code, missing.headers["Cache-Control"]) == (503, "no-store")
    assert "make dashboard" in missing.text
    assert "python -m api.web.build" in missing.text
    assert missing.headers.items() >= {name.lower(): value for name, value in GUARDS.items()}.items()
    assert script_of(own_api).status_code == 404
    assert own_api.http.get("/jobs").status_code == 200

    own_api.build()
    assert PAGE[-20:] in own_api.http.get("/ui/jobs", headers=BROWSER).text


def test_a_build_that_replaces_another_one_counts_at_once(own_api: Serving) -> None:
    own_api.build()
    assert script_of(own_api).status_code == 200
    own_api.build(PAGE.replace("index-1f", "index-2e"), **{"index-2e": "export const newer = true"})
    assert "index-2e" in own_api.http.get("/ui/", headers=BROWSER).text
    assert own_api.http.get("/ui/assets/index-2e.js").text == "export const newer = true"


def test_while_builds_replace_one_another_every_answer_is_of_one_of_them(own_api: Serving) -> None:
    own_api.build("<head>0", **{"of-0": "0"})
    assert own_api.http.get("/ui/").status_code == 200
    told: list[tuple[int, str]] = [(200, "0")]
    over = threading.Event()

    def reload() -> None:
        with httpx2.Client(base_url=own_api.url) as client:
            while not over.is_set():
                answer = client.get("/ui/")
                told.append((answer.status_code, re.sub(r"<[^>]*>", "", answer.text)))

    def build(number: int) -> None:
        own_api.build(f"<head>{number}", **{f"of-{number}": str(number)})
        if number % 10 == 9:
            wait_until(lambda: told[-1] == (200, str(number)), timeout_s=10, what=f"build {number} to be served")

    browser = threading.Thread(target=reload)
    browser.start()
    try:
        for number in range(1, 60):
            build(number)
    finally:
        over.set()
        browser.join()

    assert {status for status, _ in told} == {200}
    numbers = [int(number) for _, number in told]
    assert numbers == sorted(numbers)


def test_a_build_that_is_damaged_is_not_served_and_the_log_says_so(own_api: Serving) -> None:
    own_api.build()
    (own_api.static / "assets" / "index-1f.js").write_text("something else")
    assert own_api.http.get("/ui/", headers=BROWSER).status_code == 503
    assert own_api.http.get("/ui/", headers=BROWSER).status_code == 503
    (said,) = [line for line in own_api.log.read_text().splitlines() if "dashboard_unreadable" in line]
    assert "index-1f.js is not the file that was built" in said


def test_a_damaged_build_that_is_mended_in_its_place_is_served(own_api: Serving) -> None:
    own_api.build()
    script = own_api.static / "assets" / "index-1f.js"
    content = script.read_text()
    script.write_text("something else")
    assert script_of(own_api).status_code == 404
    script.write_text(content)
    wait_until(lambda: script_of(own_api).status_code == 200, timeout_s=10, what="the mended build to be served")
