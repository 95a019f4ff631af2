"""What the tests of the dashboard ask for: one Chromium and one service for all of them, and visits by its users."""

from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.browser import chromium
from tests.browser.dashboard import Dashboard, assert_built, make_key_file, start_service
from tests.browser.scene import Scene, set_up
from tests.browser.talks import Talks
from tests.browser.visits import DEADLINE_MS, Visits
from tests.conftest import drop
from tests.integration.guarded_api import GuardedApi
from tests.servers import PostgresServer, ValkeyServer
from tests.service import DIGITS

FAILED = pytest.StashKey[bool]()
TIMEOUT_S = 300
"""For a test with all that it is the first to ask for: the service, and jobs that have trained."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let each test of this folder take its time."""
    for item in items:
        if item.path.parent == Path(__file__).parent and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let fixtures know whether their test has failed."""
    report = yield
    if report.when == "call":
        item.stash[FAILED] = report.failed
    return report


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """A Chromium without a window. It ends with this folder: tests elsewhere have event loops of their own."""
    expect.set_options(timeout=DEADLINE_MS)
    with sync_playwright() as playwright:
        browser = chromium.launch(playwright)
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def dashboard(
    postgres_session: PostgresServer,
    valkey_session: ValkeyServer,
    migrated_postgres_template: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Dashboard]:
    """The service on PostgreSQL: an API that asks for tokens, and a worker with simulated devices."""
    assert_built()
    folder = tmp_path_factory.mktemp("dashboard")
    postgres_session.start()
    valkey_session.start()
    url = postgres_session.create_database(template=migrated_postgres_template)
    key = make_key_file(folder)
    with (
        start_service(url, valkey_session.url, folder, key) as service,
        GuardedApi(url, folder, broker_url=valkey_session.url, key_file=key, webhook_allow="127.0.0.1") as api,
    ):
        yield Dashboard(api, service)
    drop(postgres_session, url)


@pytest.fixture(scope="module")
def api(dashboard: Dashboard) -> GuardedApi:
    """The API that visits go to; a module may have one of its own."""
    return dashboard.api


@pytest.fixture(scope="package")
def trained(dashboard: Dashboard) -> tuple[int, int]:
    """Two jobs of alice that have trained the same on a device each, but for the learning rate."""
    with dashboard.client("alice") as client:
        jobs = [
            client.submit(
                name=f"digits-{lr}", device={"count": 1}, labels={"team": "vision"}, train=DIGITS | {"lr": lr}
            )
            for lr in (0.01, 0.02)
        ]
        for job in jobs:
            assert client.wait(job.id, timeout_s=TIMEOUT_S - 50).state == "succeeded", dashboard.service.story(job.id)
    return jobs[0].id, jobs[1].id


@pytest.fixture(scope="module")
def scene(dashboard: Dashboard, trained: tuple[int, int], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Jobs in every state, with whatever data may hold."""
    with set_up(dashboard, trained, tmp_path_factory.mktemp("scene")) as scene:
        yield scene


@pytest.fixture
def talks(dashboard: Dashboard, tmp_path: Path) -> Iterator[Talks]:
    """Begins jobs that print and measure what the test tells them, until it ends."""
    talks = Talks(dashboard, tmp_path)
    yield talks
    talks.end()


@pytest.fixture
def visits(
    browser: Browser, api: GuardedApi, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Visits]:
    """Begins visits of users; whatever goes wrong in a page that the test has not said it expects, fails it."""
    visits = Visits(browser, api)
    yield visits
    has_failed = request.node.stash.get(FAILED, True)
    if has_failed:
        paths = visits.photograph(tmp_path_factory.mktemp("photographs"))
        request.node.add_report_section("teardown", "pages", "\n".join(f"the page is in {path}" for path in paths))
    visits.end()
    visits.assert_clean()
