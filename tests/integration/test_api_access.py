"""Who is let in, and what each role may do, over HTTP."""

import http.client
import re
import socket
from contextlib import closing
from pathlib import Path

import httpx2
import pytest
from sqlalchemy import text

from tests.api_server import TRAIN, ApiServer
from tests.integration.guarded_api import GuardedApi

BODY = {"device": "cpu", "train": TRAIN}
UNKNOWN = "rz_" + "A" * 43


def test_without_a_token_only_health_and_the_schema_answer(guarded: GuardedApi) -> None:
    for path in ("/healthz", "/readyz", "/openapi.json"):
        assert guarded.http.get(path).status_code == 200
    for path in ("/jobs", "/hosts", "/me", "/nothing", "/healthz/"):
        assert guarded.http.get(path).status_code == 401, path


def test_an_answer_to_no_token_says_how_to_send_one(guarded: GuardedApi) -> None:
    answer = guarded.http.post("/jobs", json=BODY)
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"].startswith("Bearer ")
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert "Authorization: Bearer" in answer.json()["detail"]


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        f"Basic {UNKNOWN}",
        UNKNOWN,
        f"Bearer {UNKNOWN}",
        f"Bearer {UNKNOWN}x",
        f"Bearer {UNKNOWN[:-1]}",
        "Bearer rz_" + "é" * 43,
        "Bearer rz_" + "x" * 60_000,
        "Bearer ' OR 1=1 --",
    ],
)
def test_what_is_no_token_of_ours_is_refused(guarded: GuardedApi, header: str) -> None:
    answer = guarded.http.get("/jobs", headers=[(b"Authorization", header.encode("latin-1"))])
    assert answer.status_code in (400, 401, 431)  # a header beyond the server's limit never gets to us
    assert (answer.status_code == 401) or len(header) > 50_000


def test_a_token_with_a_nul_in_it_is_refused(guarded: GuardedApi) -> None:
    token = guarded.tokens["alice"].encode()
    with closing(socket.create_connection(("127.0.0.1", httpx2.URL(guarded.url).port or 0))) as connection:
        connection.sendall(b"GET /jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + token + b"\0\r\n\r\n")
        assert re.match(rb"HTTP/1.1 40[01] ", connection.recv(4096))


def test_the_scheme_may_be_written_in_any_case_and_two_headers_are_one_too_many(guarded: GuardedApi) -> None:
    token = guarded.tokens["alice"]
    assert guarded.http.get("/me", headers={"authorization": f"bearer {token}"}).json()["user"] == "alice"
    assert guarded.http.get("/me", headers={"authorization": f"BEARER   {token}"}).json()["user"] == "alice"
    twice = [("Authorization", f"Bearer {token}"), ("Authorization", f"Bearer {UNKNOWN}")]
    assert guarded.http.get("/me", headers=twice).status_code == 401
    assert guarded.http.get("/me", headers=[twice[0], twice[0]]).status_code == 401


@pytest.mark.parametrize("name", ["token", "access_token", "authorization", "api_key"])
def test_a_token_in_a_query_is_none_and_not_in_the_log(guarded: GuardedApi, name: str) -> None:
    token = guarded.tokens["root"]
    assert guarded.http.get("/jobs", params={name: token}).status_code == 401
    assert guarded.by("alice").get("/jobs", params={name: token}).status_code == 422
    assert guarded.http.get("/jobs", headers={"Cookie": f"{name}={token}"}).status_code == 401
    assert guarded.http.get(f"/jobs/{token}").status_code == 401
    assert token not in guarded.log.read_text()


def test_no_other_header_says_who_asks_or_where_to(guarded: GuardedApi) -> None:
    forged = {"X-Forwarded-User": "root", "X-Remote-User": "root", "X-Forwarded-For": "127.0.0.1", "Host": "localhost"}
    assert guarded.http.get("/me", headers=forged).status_code == 401
    assert guarded.by("alice").get("/me", headers=forged).json()["user"] == "alice"
    for header in ("X-Original-URL", "X-Rewrite-URL", "X-HTTP-Method-Override"):
        value = "DELETE" if header.endswith("Override") else "/healthz"
        assert guarded.http.get("/jobs", headers={header: value}).status_code == 401
    for path in ("/docs/../jobs", "/docs/%2e%2e/jobs", "/healthz/../jobs", "/docs//../../jobs", "http://x/healthz"):
        assert raw_status(guarded, path) in (401, 404), path


def raw_status(api: GuardedApi, target: str) -> int:
    """The status of a GET whose target no client has tidied up."""
    with closing(http.client.HTTPConnection("127.0.0.1", api.port, timeout=20)) as connection:
        connection.request("GET", target)
        return connection.getresponse().status


def test_nothing_of_a_body_is_read_before_the_token(guarded: GuardedApi) -> None:
    answer = guarded.http.post("/jobs", content=b"{not json", headers={"Content-Type": "application/json"})
    assert answer.status_code == 401


def test_a_token_says_who_asks_and_what_they_may(guarded: GuardedApi) -> None:
    shown = {user: guarded.by(user).get("/me").json() for user in guarded.tokens}
    assert {user: (me["user"], me["role"]) for user, me in shown.items()} == {
        "root": ("root", "admin"),
        "alice": ("alice", "submitter"),
        "bob": ("bob", "submitter"),
        "vera": ("vera", "viewer"),
    }
    assert {me["access"] for me in shown.values()} == {"tokens"}


def test_where_no_token_is_asked_for_whoever_asks_may_do_anything(api: ApiServer) -> None:
    assert api.http.get("/me").json() == {"user": None, "role": "admin", "token_id": None, "access": "loopback"}


def test_on_its_own_machine_a_service_makes_tokens_for_named_users_alone(api: ApiServer) -> None:
    nobody = api.post("/tokens", {"name": "x"})
    assert (nobody.status_code, nobody.json()["errors"][0]["field"]) == (422, "user")
    api.post("/users", {"name": "erin", "role": "viewer"})
    made = api.post("/tokens", {"name": "x", "user": "erin"})
    assert (made.status_code, made.json()["role"]) == (201, "viewer")


def test_a_viewer_reads_everything_and_changes_nothing(guarded: GuardedApi) -> None:
    job_id = guarded.submit_by("alice")
    vera = guarded.by("vera")
    for path in ("/jobs", f"/jobs/{job_id}", f"/jobs/{job_id}/events", "/hosts", "/quotas"):
        assert vera.get(path).status_code == 200, path
    assert vera.post("/jobs/plan", json=BODY).status_code == 200
    refused = vera.post("/jobs", json=BODY)
    assert refused.status_code == 403
    assert refused.json()["detail"] == "this takes the role submitter; the token of vera has viewer"
    assert vera.post(f"/jobs/{job_id}/cancel").status_code == 403


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/hosts/alpha/drain", None),
        ("POST", "/hosts/alpha/undrain", None),
        ("DELETE", "/hosts/alpha", None),
        ("POST", "/hosts/alpha/devices/cuda:0/release", None),
        ("PUT", "/quotas/user/alice", {"share": 100}),
        ("DELETE", "/quotas/user/alice", None),
        ("POST", "/users", {"name": "eve", "role": "admin"}),
        ("GET", "/users", None),
        ("PATCH", "/users/alice", {"role": "admin"}),
        ("GET", "/users/alice", None),
        ("GET", "/audit", None),
        ("PUT", "/secrets/wandb", {"value": "x"}),
        ("DELETE", "/secrets/wandb", None),
        ("GET", "/webhooks", None),
        ("POST", "/webhooks", {"url": "https://hooks.example/a"}),
    ],
)
def test_hosts_quotas_users_and_the_audit_are_an_admins(
    guarded: GuardedApi, method: str, path: str, body: object
) -> None:
    answer = guarded.by("alice").request(method, path, json=body)
    assert answer.status_code == 403
    assert "takes the role admin" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("method", "verb", "body"),
    [
        ("POST", "/cancel", None),
        ("POST", "/pause", None),
        ("POST", "/resume", None),
        ("POST", "/retry", None),
        ("PATCH", "", {"priority": 100}),
        ("POST", "/clone", {}),
    ],
)
def test_a_submitter_acts_on_their_own_jobs_and_is_told_whose_the_others_are(
    guarded: GuardedApi, method: str, verb: str, body: object
) -> None:
    job_id = guarded.submit_by("alice")
    before = guarded.by("root").get(f"/jobs/{job_id}").json()
    refused = guarded.by("bob").request(method, f"/jobs/{job_id}{verb}", json=body)
    assert refused.status_code == 403
    assert refused.json()["detail"].startswith(f"job {job_id} is alice's; ")
    assert guarded.by("root").get(f"/jobs/{job_id}").json() == before
    for user in ("alice", "root"):
        allowed = guarded.by(user).request(method, f"/jobs/{job_id}{verb}", json=body)
        assert allowed.status_code in (200, 201, 409), allowed.text  # 409: nothing to retry


@pytest.mark.parametrize(
    "changes", [{"user": "alice"}, {"owner": "alice"}, {"spec": {"user": "alice"}}, {"role": "admin"}, {"id": 1}]
)
def test_no_change_of_a_job_gives_it_to_somebody(guarded: GuardedApi, changes: dict[str, object]) -> None:
    job_id = guarded.submit_by("bob")
    assert guarded.by("bob").patch(f"/jobs/{job_id}", json=changes).status_code == 422
    assert guarded.by("bob").get(f"/jobs/{job_id}").json()["user"] == "bob"


def test_a_checkpoint_of_another_is_theirs_to_remove(guarded: GuardedApi) -> None:
    job_id = guarded.submit_by("alice")
    for method, path, body in (("DELETE", "1", None), ("POST", "prune", {"keep": []})):
        refused = guarded.by("bob").request(method, f"/jobs/{job_id}/checkpoints/{path}", json=body)
        assert (refused.status_code, "is alice's" in refused.json()["detail"]) == (403, True)


def test_a_job_that_nobody_owns_is_the_admins(guarded: GuardedApi) -> None:
    job_id = guarded.submit_by("root")
    with guarded.database.session_scope() as session:
        session.execute(text('UPDATE jobs SET "user" = NULL WHERE id = :id'), {"id": job_id})
    refused = guarded.by("alice").post(f"/jobs/{job_id}/cancel")
    assert refused.status_code == 403
    assert refused.json()["detail"].startswith(f"job {job_id} has no owner; ")
    assert guarded.by("root").post(f"/jobs/{job_id}/cancel").status_code == 200


def test_a_job_belongs_to_whose_token_submitted_it(guarded: GuardedApi) -> None:
    alice = guarded.by("alice")
    assert alice.post("/jobs", json=BODY).json()["user"] == "alice"
    own = alice.post("/jobs", json=BODY | {"user": "alice"})
    assert (own.json()["user"], own.json()["spec"]["user"]) == ("alice", "alice")
    refused = alice.post("/jobs", json=BODY | {"user": "bob"})
    assert refused.status_code == 403
    assert "only the role admin may submit for bob" in refused.json()["detail"]
    assert guarded.by("root").post("/jobs", json=BODY | {"user": "bob"}).json()["user"] == "bob"
    assert guarded.by("root").post("/jobs", json=BODY).json()["user"] == "root"


def test_a_clone_belongs_to_its_submitter_whatever_its_changes_say(guarded: GuardedApi) -> None:
    job_id = guarded.submit_by("alice")
    path = f"/jobs/{job_id}/clone"
    assert guarded.by("alice").post(path, json={"changes": {"user": "bob"}}).status_code == 403
    assert guarded.by("alice").post(path, json={"changes": {"user": None}}).json()["user"] == "alice"
    assert guarded.by("root").post(path, json={}).json()["user"] == "alice"


def test_an_idempotency_key_of_one_user_hands_no_job_to_another(guarded: GuardedApi) -> None:
    header = {"Idempotency-Key": "nightly"}
    first = guarded.by("alice").post("/jobs", json=BODY, headers=header)
    assert guarded.by("alice").post("/jobs", json=BODY, headers=header).json()["id"] == first.json()["id"]
    assert guarded.by("bob").post("/jobs", json=BODY, headers=header).status_code == 422


def test_what_was_done_and_what_was_refused_is_in_the_audit(guarded: GuardedApi) -> None:
    job_id = guarded.submit_by("alice")
    guarded.by("bob").post(f"/jobs/{job_id}/cancel")
    guarded.by("alice").patch(f"/jobs/{job_id}", json={"priority": 7})
    root = guarded.by("root")
    items = root.get("/audit", params={"subject": f"jobs/{job_id}"}).json()["items"]
    assert [(each["actor"], each["action"]) for each in items] == [
        ("alice", "change_job"),
        ("bob", "cancel_job"),
        ("alice", "submit_job"),
    ]
    assert items[0]["detail"] == {"priority": 7}
    assert items[1]["detail"]["refused"].startswith(f"job {job_id} is alice's")
    assert items[0]["token_id"] == guarded.by("alice").get("/me").json()["token_id"]
    assert (
        root.get("/audit", params={"actor": "bob", "action": "cancel_job"}).json()["items"][0]["id"] == items[1]["id"]
    )
    assert root.get("/audit", params={"to": items[0]["at"], "subject": f"jobs/{job_id}"}).json()["items"] == items[1:]


def test_whoever_is_refused_again_and_again_does_not_fill_the_audit(guarded: GuardedApi) -> None:
    token = guarded.by("vera").post("/tokens", json={"name": "of a loop"}).json()
    client = guarded.with_token(token["token"])
    assert {client.post("/jobs", json=BODY).status_code for _ in range(40)} == {403}
    found = guarded.by("root").get("/audit", params={"actor": "vera", "action": "submit_job", "size": 1000}).json()
    assert 20 <= len([each for each in found["items"] if each["token_id"] == token["id"]]) < 40


def test_what_fails_leaves_no_trace_of_having_been_done(guarded: GuardedApi) -> None:
    job_id = guarded.submit_by("alice")
    assert guarded.by("alice").post(f"/jobs/{job_id}/retry").status_code == 409
    assert guarded.by("root").post("/hosts/nowhere/drain").status_code == 404
    items = guarded.by("root").get("/audit", params={"size": 1000}).json()["items"]
    assert not [each for each in items if each["subject"] == "hosts/nowhere"]
    assert not [each for each in items if each["subject"] == f"jobs/{job_id}" and each["action"] == "retry_job"]


def test_without_a_key_no_secret_is_stored_and_the_answer_says_how_to_make_one(guarded: GuardedApi) -> None:
    answer = guarded.by("root").put("/secrets/wandb", json={"value": "x"})
    assert answer.status_code == 409
    assert "python -m jobs.sealing" in answer.json()["detail"]


def test_a_name_made_to_lead_to_this_machine_is_not_served(api: ApiServer) -> None:
    answer = api.http.get("/jobs", headers={"Host": "evil.example"})
    assert answer.status_code == 421
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert api.http.get("/healthz", headers={"Host": "evil.example"}).status_code == 421


def test_a_page_of_another_site_cannot_submit_to_this_machine(api: ApiServer) -> None:
    refused = api.http.post("/jobs", json=BODY, headers={"Origin": "http://evil.example"})
    assert refused.status_code == 403
    assert api.http.post("/jobs", json=BODY, headers={"Origin": "http://localhost:5173"}).status_code == 201


def test_no_header_makes_a_request_look_local_or_is_taken_for_it(api: ApiServer) -> None:
    assert api.http.get("/jobs", headers={"X-Forwarded-For": "127.0.0.1"}).status_code == 403


def test_a_token_that_asks_too_often_is_told_how_long_to_wait(sqlite_url: str, tmp_path: Path) -> None:
    with GuardedApi(sqlite_url, tmp_path, rate_limit=0.001) as slow:
        alice = slow.by("alice")
        assert alice.get("/me").status_code == 200
        refused = alice.get("/me")
        assert refused.status_code == 429
        assert 1 <= int(refused.headers["Retry-After"]) <= 1000
        assert slow.by("bob").get("/me").status_code == 200


def test_an_address_that_keeps_sending_wrong_tokens_has_to_wait_and_nobody_else_there(
    sqlite_url: str, tmp_path: Path
) -> None:
    with GuardedApi(sqlite_url, tmp_path) as api:
        alice, wrong = api.by("alice"), api.with_token(UNKNOWN)
        assert alice.get("/me").status_code == 200
        statuses = [wrong.get("/me").status_code for _ in range(30)]
        assert statuses[0] == 401
        assert 429 in statuses
        assert alice.get("/me").status_code == 200
        assert api.http.get("/healthz").status_code == 200
