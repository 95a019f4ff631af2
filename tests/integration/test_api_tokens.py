"""Users and tokens over HTTP: making them, and having them count no more."""

from datetime import UTC, datetime, timedelta

import pytest

from jobs.store import tokens
from jobs.tables import Token
from tests.integration.guarded_api import GuardedApi
from tests.waiting import wait_until


def make(guarded: GuardedApi, by: str, **fields: object) -> dict:
    answer = guarded.by(by).post("/tokens", json={"name": "a test"} | fields)
    assert answer.status_code == 201, answer.text
    made: dict = answer.json()
    return made


def add(guarded: GuardedApi, name: str, role: str) -> str:
    """Add a user, and return a token of theirs."""
    assert guarded.by("root").post("/users", json={"name": name, "role": role}).status_code == 201
    token = make(guarded, "root", user=name)["token"]
    assert isinstance(token, str)
    return token


def test_a_token_is_shown_once_and_stored_as_a_hash(guarded: GuardedApi) -> None:
    answer = guarded.by("alice").post("/tokens", json={"name": "laptop"})
    made = answer.json()
    assert answer.headers["Cache-Control"] == "no-store"
    assert tokens.SHAPE.fullmatch(made["token"])
    assert (made["user"], made["name"], made["role"], made["expires_at"]) == ("alice", "laptop", "submitter", None)
    assert guarded.with_token(made["token"]).get("/me").json()["token_id"] == made["id"]
    (listed,) = [each for each in guarded.by("alice").get("/tokens").json()["items"] if each["id"] == made["id"]]
    assert listed == {name: value for name, value in made.items() if name != "token"} | {
        "last_used_at": listed["last_used_at"]
    }
    with guarded.database.session_scope(read_only=True) as session:
        row = session.get_one(Token, made["id"])
        assert made["token"] not in str(vars(row))
        assert row.digest == tokens.digest(made["token"])


def test_each_sees_their_own_tokens_and_an_admin_all(guarded: GuardedApi) -> None:
    make(guarded, "bob")
    of = {
        user: {each["user"] for each in guarded.by(user).get("/tokens", params={"size": 1000}).json()["items"]}
        for user in ("alice", "vera", "root")
    }
    assert of["alice"] == {"alice"}
    assert of["vera"] == {"vera"}
    assert of["root"] >= {"alice", "bob", "vera", "root"}
    assert guarded.by("alice").get("/tokens", params={"user": "bob"}).status_code == 403
    only = guarded.by("root").get("/tokens", params={"user": "bob"}).json()["items"]
    assert {each["user"] for each in only} == {"bob"}


def test_a_revoked_token_does_not_count_from_the_next_request_on(guarded: GuardedApi) -> None:
    made = make(guarded, "alice")
    client = guarded.with_token(made["token"])
    assert client.get("/me").status_code == 200
    assert client.delete(f"/tokens/{made['id']}").status_code == 204
    assert client.get("/me").status_code == 401
    assert guarded.by("alice").delete(f"/tokens/{made['id']}").status_code == 204  # again
    assert guarded.by("alice").get("/me").status_code == 200


def test_nobody_but_an_admin_revokes_the_token_of_another(guarded: GuardedApi) -> None:
    made = make(guarded, "alice")
    assert guarded.by("bob").delete(f"/tokens/{made['id']}").status_code == 404
    assert guarded.by("root").delete(f"/tokens/{made['id']}").status_code == 204
    assert guarded.with_token(made["token"]).get("/me").status_code == 401


def test_a_token_of_a_lesser_role_ends_none_of_a_greater_one(guarded: GuardedApi) -> None:
    """That of a dashboard lies in more places than that of its user."""
    carried = guarded.with_token(make(guarded, "root", role="viewer")["token"])
    greater, equal = make(guarded, "root"), make(guarded, "root", role="viewer")
    refused = carried.delete(f"/tokens/{greater['id']}")
    assert (refused.status_code, "none of the role admin" in refused.json()["detail"]) == (403, True)
    assert guarded.with_token(greater["token"]).get("/me").status_code == 200
    assert carried.delete(f"/tokens/{equal['id']}").status_code == 204
    assert carried.delete(f"/tokens/{carried.get('/me').json()['token_id']}").status_code == 204


def test_a_token_counts_until_it_expires(guarded: GuardedApi) -> None:
    soon = datetime.now(UTC) + timedelta(hours=1)
    made = make(guarded, "alice", expires_at=soon.isoformat())
    client = guarded.with_token(made["token"])
    assert client.get("/me").status_code == 200
    with guarded.database.session_scope() as session:
        session.get_one(Token, made["id"]).expires_at = datetime.now(UTC) - timedelta(seconds=1)
    assert client.get("/me").status_code == 401
    over = guarded.by("alice").post("/tokens", json={"name": "x", "expires_at": "2020-01-01T00:00:00Z"})
    assert (over.status_code, over.json()["errors"][0]["field"]) == (422, "expires_at")


def test_nobody_grants_more_than_they_have(guarded: GuardedApi) -> None:
    alice = guarded.by("alice")
    assert alice.post("/tokens", json={"name": "x", "role": "admin"}).status_code == 403
    assert alice.post("/tokens", json={"name": "x", "user": "bob"}).status_code == 403
    lesser = guarded.with_token(make(guarded, "root", role="viewer")["token"])
    assert lesser.get("/me").json()["role"] == "viewer"
    assert lesser.get("/audit").status_code == 403
    assert lesser.post("/tokens", json={"name": "x", "role": "admin"}).status_code == 403
    assert lesser.post("/tokens", json={"name": "x"}).json()["role"] == "viewer"


def test_a_token_that_expires_makes_none_that_outlives_it(guarded: GuardedApi) -> None:
    soon = datetime.now(UTC) + timedelta(hours=1)
    client = guarded.with_token(make(guarded, "alice", expires_at=soon.isoformat())["token"])
    later = {"name": "x", "expires_at": (soon + timedelta(days=1)).isoformat()}
    assert client.post("/tokens", json=later).status_code == 403
    assert datetime.fromisoformat(client.post("/tokens", json={"name": "x"}).json()["expires_at"]) == soon


def test_a_user_who_is_disabled_or_lowered_is_so_from_the_next_request_on(guarded: GuardedApi) -> None:
    carol = guarded.with_token(add(guarded, "carol", "submitter"))
    root = guarded.by("root")
    assert carol.get("/me").json()["role"] == "submitter"
    assert root.patch("/users/carol", json={"role": "viewer"}).json()["role"] == "viewer"
    assert carol.get("/me").json()["role"] == "viewer"
    assert root.patch("/users/carol", json={"disabled": True}).json()["disabled_at"] is not None
    assert carol.get("/me").status_code == 401
    assert root.post("/tokens", json={"name": "x", "user": "carol"}).status_code == 409
    assert root.patch("/users/carol", json={"disabled": False}).json()["disabled_at"] is None
    assert carol.get("/me").status_code == 200


def test_a_user_is_added_once_and_found_by_name(guarded: GuardedApi) -> None:
    root = guarded.by("root")
    added = root.post("/users", json={"name": "dave@example.com", "role": "viewer"})
    assert (added.status_code, added.headers["Location"]) == (201, "/users/dave@example.com")
    assert root.get(added.headers["Location"]).json() == added.json()
    assert root.post("/users", json={"name": "dave@example.com", "role": "admin"}).status_code == 409
    assert "dave@example.com" in [each["name"] for each in root.get("/users").json()["items"]]
    assert root.get("/users/nobody").status_code == 404
    missing = root.post("/tokens", json={"name": "x", "user": "nobody"})
    assert (missing.status_code, missing.json()["errors"][0]["field"]) == (422, "user")


@pytest.mark.parametrize("name", ["", " alice", "a b", "a/b", "*", "-a", "álice", "a\u0000", "a" * 129, "a\n"])
def test_a_name_that_could_be_taken_for_something_else_is_refused(guarded: GuardedApi, name: str) -> None:
    answer = guarded.by("root").post("/users", json={"name": name, "role": "viewer"})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "name")


def test_the_last_admin_cannot_be_taken_away(guarded: GuardedApi) -> None:
    root = guarded.by("root")
    own = root.get("/me").json()["token_id"]
    others = [
        each["id"]
        for each in root.get("/tokens", params={"user": "root"}).json()["items"]
        if each["id"] != own and each["revoked_at"] is None
    ]
    for token_id in others:
        assert root.delete(f"/tokens/{token_id}").status_code == 204
    for refused in (
        root.patch("/users/root", json={"role": "submitter"}),
        root.patch("/users/root", json={"disabled": True}),
        root.delete(f"/tokens/{own}"),
    ):
        assert refused.status_code == 409
        assert "nobody with a token of the role admin" in refused.json()["detail"]
    assert root.get("/me").json()["role"] == "admin"
    second = guarded.with_token(add(guarded, "second", "admin"))
    assert second.patch("/users/root", json={"role": "submitter"}).status_code == 200
    assert root.get("/me").json()["role"] == "submitter"
    assert second.patch("/users/second", json={"disabled": True}).status_code == 409
    assert second.patch("/users/root", json={"role": "admin"}).status_code == 200
    assert root.patch("/users/second", json={"disabled": True}).status_code == 200


def test_the_use_of_a_token_is_noted_to_the_minute(guarded: GuardedApi) -> None:
    made = make(guarded, "alice")
    client = guarded.with_token(made["token"])

    def used() -> str | None:
        (shown,) = [each for each in guarded.by("alice").get("/tokens").json()["items"] if each["id"] == made["id"]]
        at: str | None = shown["last_used_at"]
        return at

    assert used() is None
    client.get("/me")
    wait_until(lambda: used() is not None, timeout_s=20, what="the use to be noted")
    first = used()
    client.get("/me")
    assert used() == first
