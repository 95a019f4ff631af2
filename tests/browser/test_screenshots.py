"""The pictures of the dashboard in `docs/screenshots`: how they are taken, and that each is still what its page shows.

pytest tests/browser/test_screenshots.py --screenshots
"""

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser import gallery
from tests.browser.charts import chart, inked
from tests.browser.forms import fill
from tests.browser.places import expect_ready
from tests.browser.visits import DESKTOP, PHONE, Visits
from tests.conftest import drop
from tests.integration.guarded_api import GuardedApi
from tests.servers import PostgresServer

DOCS = Path(__file__).resolve().parents[2] / "docs" / "screenshots"
MOST_BYTES = 150_000


@pytest.fixture(scope="module")
def api(
    postgres_session: PostgresServer, migrated_postgres_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GuardedApi]:
    """An API of its own: the service of the other tests is as they have left it."""
    postgres_session.start()
    url = postgres_session.create_database(template=migrated_postgres_template)
    # Its hosts have no worker that would say again that they are there.
    with GuardedApi(url, tmp_path_factory.mktemp("gallery"), host_timeout_s=3600) as api:
        api.tokens |= gallery.make_tokens(api.database)
        yield api
    drop(postgres_session, url)


@pytest.fixture(scope="module")
def ids(api: GuardedApi) -> dict[str, int]:
    """The jobs to show, by their names."""
    return gallery.fill(api.database)


def jobs(page: Page) -> None:
    expect(page.get_by_role("row").filter(has_text="cifar-wide-lr3")).to_be_visible()
    if page.viewport_size == {"width": DESKTOP[0], "height": DESKTOP[1]}:
        expect(page.get_by_role("img", name="of job")).to_have_count(6)


def job(page: Page) -> None:
    expect(chart(page, "train/loss")).to_be_visible()
    page.wait_for_function("() => document.querySelector('figure canvas') !== null")
    assert inked(page, "train/loss") > 500


def compare(page: Page) -> None:
    job(page)


def new_job(page: Page) -> None:
    fill(page, {"Model": "resnet50", "Data": "cifar10", "Batch": "256", "LR": "0.1", "Epochs": "90"})
    page.get_by_label("Train on").select_option("a number of GPUs, any")
    expect(page.get_by_role("region", name="Dry run")).to_contain_text("Batch per rank")
    page.evaluate("document.activeElement.blur(); window.scrollTo(0, 0)")


def hosts(page: Page) -> None:
    expect(page.get_by_role("link", name="cifar-resnet50").first).to_be_visible()


PICTURES = {
    "jobs": ("/jobs", jobs),
    "job": ("/jobs/{cifar-resnet50}/metrics?smoothing=0.6", job),
    "compare": ("/compare?jobs={cifar-resnet18},{cifar-r18-lr03}&smoothing=0.6", compare),
    "new-job": ("/jobs/new", new_job),
    "hosts": ("/hosts", hosts),
}
LOOKS = ("light", "dark")
CASES = [*(f"{name}-{look}" for name in PICTURES for look in LOOKS), "jobs-phone", "job-phone"]


@pytest.fixture
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Where the pictures go: into the docs where that is asked for."""
    if not request.config.getoption("--screenshots"):
        return tmp_path
    DOCS.mkdir(exist_ok=True)
    return DOCS


@pytest.mark.parametrize("case", CASES)
def test_a_picture_is_taken_of_each_page(visits: Visits, ids: dict[str, int], folder: Path, case: str) -> None:
    name, _, look = case.rpartition("-")
    address, prepare = PICTURES[name]
    size = PHONE if look == "phone" else DESKTOP
    visit = visits.by("ada", size=size, colours="dark" if look == "dark" else "light", still=True)
    page = visit.open(address.format(**ids))
    expect_ready(page)
    prepare(page)
    picture = page.screenshot(path=folder / f"{case}.png", animations="disabled")
    assert struct.unpack(">II", picture[16:24]) == size
    assert 10_000 < len(picture) <= MOST_BYTES


def test_every_picture_in_the_docs_is_one_of_these_and_none_is_missing() -> None:
    assert {path.stem for path in DOCS.iterdir()} == set(CASES)
    for path in DOCS.iterdir():
        assert path.stat().st_size <= MOST_BYTES, path
