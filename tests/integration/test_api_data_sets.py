"""Data sets over HTTP: those that trainers know, and those that a worker has found in its data roots."""

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from jobs.store import hosts
from jobs.tables import Host
from tests.api_server import ApiServer
from tests.integration.test_api_errors import problem_of
from tests.waiting import wait_until
from worker.data_sets import DataSets

KNOWN = {"recipes": [], "data": [{"name": "digits", "description": "handwritten"}], "train_schema": {}}


@pytest.fixture(autouse=True)
def fleet(api: ApiServer, tmp_path: Path) -> None:
    """Two hosts that know digits; one has a data root of its own called digits, both one called pets."""
    for number, name in enumerate(("cat", "dog"), start=1):
        (tmp_path / "pets" / name).mkdir(parents=True)
        for image in range(number):
            (tmp_path / "pets" / name / f"{image}.png").touch()
    with api.database.session_scope() as session:
        session.execute(update(Host).values(catalog=None, data_sets=None))
        for name in ("alpha", "beta"):
            hosts.register(session, name, worker="1:1", run_root="/runs", devices=[])
            hosts.set_catalog(session, name, KNOWN)
    look(api, "alpha", {"pets": str(tmp_path / "pets"), "digits": str(tmp_path / "pets")})
    look(api, "beta", {"pets": str(tmp_path / "nothing")})


def look(api: ApiServer, host_name: str, roots: dict[str, str]) -> None:
    """Have a worker look into these roots and publish what is there."""
    with api.database.session_scope() as session:
        session.execute(update(Host).where(Host.name == host_name).values(data_sets=None))
    thread = DataSets(api.database, host_name, roots, is_held=lambda: True)
    thread.start()
    wait_until(lambda: published(api, host_name) is not None, timeout_s=30, what="what was found to be published")
    thread.stop()
    thread.join(10)


def published(api: ApiServer, host_name: str) -> Any:
    with api.database.session_scope(read_only=True) as session:
        return session.get_one(Host, host_name).data_sets


def get(api: ApiServer, path: str) -> Any:
    answer = api.http.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_what_trainers_know_and_what_lies_in_data_roots_is_listed_by_name(api: ApiServer) -> None:
    items = {each["name"]: each for each in get(api, "/data-sets")["items"]}
    assert list(items) == ["digits", "digits:", "pets"]
    assert items["digits"] == {
        "name": "digits",
        "kind": "builtin",
        "description": "handwritten",
        "hosts": ["alpha", "beta"],
        "samples": None,
        "classes": None,
    }
    assert (items["digits:"]["kind"], items["digits:"]["hosts"]) == ("image_folder", ["alpha"])
    assert (items["pets"]["samples"], items["pets"]["classes"], items["pets"]["hosts"]) == (3, 2, ["alpha", "beta"])


def test_a_data_set_shows_its_counts_and_samples_as_each_host_has_found_it(api: ApiServer, tmp_path: Path) -> None:
    alpha, beta = get(api, "/data-sets/pets")["on"]
    assert (alpha["host"], alpha["path"], alpha["complete"]) == ("alpha", str(tmp_path / "pets"), True)
    assert alpha["splits"] == {"all": {"samples": 3, "classes": {"cat": 1, "dog": 2}}}
    assert alpha["preview"][0] == {"name": "cat/0.png", "classes": ["cat"]}
    assert (beta["host"], beta["kind"], beta["complete"]) == ("beta", "folder", False)
    assert "cannot be listed" in beta["note"]
    assert get(api, "/data-sets/pets:") == get(api, "/data-sets/pets")
    assert get(api, "/data-sets/digits")["on"] == []
    assert [each["host"] for each in get(api, "/data-sets/digits:")["on"]] == ["alpha"]


def test_a_data_set_that_nobody_has_is_not_found(api: ApiServer) -> None:
    for name in ("maps", "pets:june", "..", "%2e%2e%2fetc", "digits:one"):
        problem_of(api.http.get(f"/data-sets/{name}"), 404)


def test_what_another_release_has_published_keeps_nobody_from_reading_the_rest(api: ApiServer) -> None:
    with api.database.session_scope() as session:
        session.execute(update(Host).where(Host.name == "beta").values(data_sets=[{"kind": "unheard of"}]))
    assert get(api, "/data-sets/pets")["hosts"] == ["alpha"]
