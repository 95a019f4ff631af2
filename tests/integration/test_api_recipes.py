"""Recipes over HTTP: what the hosts have published of their trainers, also where two of them differ."""

from typing import Any

import pytest
from sqlalchemy import update

from jobs.store import hosts
from jobs.tables import Host
from tests.api_server import ApiServer
from tests.integration.test_api_errors import problem_of

OLD = {"name": "classification", "description": "one label each", "models": ["mlp"], "options_schema": {}}
NEW = OLD | {"models": ["mlp", "resnet18"], "options_schema": {"properties": {"top_k": {"type": "integer"}}}}
OTHER = {"name": "next-byte", "description": "text", "models": ["tiny"], "options_schema": {"type": "object"}}


@pytest.fixture(autouse=True)
def published(api: ApiServer) -> None:
    """Three hosts: two have one release of a recipe, and the third a newer one and a recipe more."""
    with api.database.session_scope() as session:
        session.execute(update(Host).values(catalog=None))
        for name, recipes in (("alpha", [OLD]), ("beta", [NEW, OTHER]), ("gamma", [OLD])):
            hosts.register(session, name, worker="1:1", run_root="/runs", devices=[])
            hosts.set_catalog(session, name, {"recipes": recipes, "data": [], "train_schema": {}})


def get(api: ApiServer, path: str) -> Any:
    answer = api.http.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_recipes_are_listed_with_all_models_and_hosts_that_have_them(api: ApiServer) -> None:
    assert get(api, "/recipes") == {
        "items": [
            {
                "name": "classification",
                "description": "one label each",
                "models": ["mlp", "resnet18"],
                "hosts": ["alpha", "beta", "gamma"],
            },
            {"name": "next-byte", "description": "text", "models": ["tiny"], "hosts": ["beta"]},
        ]
    }


def test_a_recipe_shows_its_options_and_two_hosts_that_differ_are_both_shown(api: ApiServer) -> None:
    shown = get(api, "/recipes/classification")
    assert shown["hosts"] == ["alpha", "beta", "gamma"]
    wanted = [(["alpha", "gamma"], OLD), (["beta"], NEW)]
    parts = ("description", "models", "options_schema")
    assert shown["variants"] == [{"hosts": names} | {part: recipe[part] for part in parts} for names, recipe in wanted]
    assert len(get(api, "/recipes/next-byte")["variants"]) == 1


def test_a_recipe_that_no_host_has_is_not_found_and_those_that_are_there_are_named(api: ApiServer) -> None:
    assert "classification, next-byte" in problem_of(api.http.get("/recipes/segmentation"), 404)["detail"]


def test_the_recipes_of_a_host_that_was_removed_are_gone(api: ApiServer) -> None:
    with api.database.session_scope() as session:
        session.execute(update(Host).where(Host.name == "beta").values(removed_at=Host.registered_at))
    assert [each["name"] for each in get(api, "/recipes")["items"]] == ["classification"]
    assert get(api, "/recipes/classification")["models"] == ["mlp"]
