"""The commands that list what can be trained: recipes and data sets."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.store import hosts
from tests.api_server import ApiServer
from tests.integration.command import document, rankzero
from tests.integration.conftest import api_on_sqlite
from tests.waiting import wait_until
from worker.data_sets import DataSets

MODELS = [f"model{number}" for number in range(9)]
OPTIONS = {"properties": {"mixup": {"description": "How much\nto mix.", "default": 0.0}, "own": True}}
RECIPE = {"name": "classification", "description": "one label [each]", "models": MODELS, "options_schema": OPTIONS}
CATALOG = {"recipes": [RECIPE], "data": [{"name": "digits", "description": "handwritten"}], "train_schema": {}}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory, migrated_sqlite_template: Path) -> Iterator[ApiServer]:
    with api_on_sqlite(migrated_sqlite_template, tmp_path_factory.mktemp("api")) as server:
        yield server


@pytest.fixture(scope="module")
def pets(api: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of two classes, which a host has as a data root, beside a recipe and a data set that is built in."""
    assert rankzero(api.url, "recipes").stdout == "no host has told of its recipes yet\n"
    assert rankzero(api.url, "data-sets").stdout == "no host has told of its data yet\n"
    folder = tmp_path_factory.mktemp("pets")
    for name in ("cat", "dog"):
        (folder / name).mkdir()
        (folder / name / "1.png").touch()
    with api.database.session_scope() as session:
        hosts.register(session, "alpha", worker="1:1", run_root="/runs", devices=[])
        hosts.set_catalog(session, "alpha", CATALOG)
    thread = DataSets(api.database, "alpha", {"pets": str(folder)}, is_held=lambda: True)
    thread.start()
    found = ("data-sets", "pets", "--json")
    wait_until(lambda: rankzero(api.url, *found).returncode == 0, timeout_s=30, what="the folder to be looked at")
    thread.stop()
    thread.join(10)
    return folder


@pytest.mark.usefixtures("pets")
def test_recipes_are_listed_and_one_is_shown_with_its_options(api: ApiServer) -> None:
    listed = rankzero(api.url, "recipes").stdout.splitlines()
    shown = rankzero(api.url, "recipes", "classification").stdout.splitlines()

    assert listed[1].split("  ")[0] == "classification"
    assert "one label [each]" in listed[1]
    assert "model0, model1, model2 and 6 more" in listed[1]
    assert shown == [
        "classification: one label [each]",
        f"models: {', '.join(MODELS)}",
        "hosts: alpha",
        "options.mixup: How much to mix. Default 0.0.",
        "options.own: ",
    ]
    assert document(rankzero(api.url, "recipes", "--json"))[0]["models"] == MODELS


def test_data_sets_are_listed_and_one_is_shown_as_it_lies_on_each_host(api: ApiServer, pets: Path) -> None:
    listed = rankzero(api.url, "data-sets").stdout.splitlines()
    shown = rankzero(api.url, "data-sets", "pets").stdout.splitlines()

    assert [line.split()[0] for line in listed] == ["DATA", "digits", "pets"]
    assert listed[2].split()[1:5] == ["image_folder", "2", "2", "alpha"]
    assert shown[-1] == f"{pets} on alpha: all 2 samples"
    assert document(rankzero(api.url, "data-sets", "pets", "--json"))["samples"] == 2
