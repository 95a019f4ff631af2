"""Webhooks over HTTP: registering, changing, what each was told, and what is refused."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from jobs.database import now
from jobs.sealing import make_key
from jobs.store import deliveries
from jobs.store.deliveries import Try
from tests.api_server import ApiServer
from tests.integration.test_api_errors import fields_of

PAGE = Path(__file__).parents[2] / "docs" / "webhooks.md"
URL = "https://hooks.example/rankzero"


@pytest.fixture(scope="module")
def key_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("key") / "key"
    make_key(path)
    return path


@pytest.fixture(scope="module")
def api(api_database: str, key_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """The API with a key of the service, whose operator allows one private network and one name."""
    folder = tmp_path_factory.mktemp("api")
    with ApiServer(api_database, folder, key_file=key_file, webhook_allow="10.20.0.0/16,hooks.localhost") as server:
        yield server


def register(api: ApiServer, **fields: object) -> Any:
    """Register a webhook and return it, with its key."""
    answer = api.post("/webhooks", {"url": URL} | fields)
    assert answer.status_code == 201, answer.text
    return answer.json()


def deliveries_of(api: ApiServer, webhook: Any) -> Any:
    """What a webhook was told, newest first."""
    answer = api.http.get(f"/webhooks/{webhook['id']}/deliveries")
    assert answer.status_code == 200, answer.text
    return answer.json()["items"]


def test_a_webhook_is_shown_with_its_key_once(api: ApiServer) -> None:
    given = {"url": URL, "topics": ["job.failed", "job.succeeded"], "labels": {"team": "vision"}, "description": "chat"}
    answer = api.post("/webhooks", given)

    assert answer.status_code == 201
    created = answer.json()
    assert answer.headers["Location"] == f"/webhooks/{created['id']}"
    key = created.pop("key")
    assert key.startswith("whsec_")
    assert {name: created[name] for name in given} == given
    assert (created["enabled"], created["created_by"]) == (True, None)
    assert api.http.get(answer.headers["Location"]).json() == created
    assert created in api.http.get("/webhooks", params={"size": 1000}).json()["items"]
    assert key not in api.http.get("/webhooks", params={"size": 1000}).text
    assert key not in api.log.read_text()


def test_the_command_of_the_page_registers_a_webhook(api: ApiServer) -> None:
    (command,) = re.findall(r"```sh\n(curl .*?)```", PAGE.read_text(), re.DOTALL)
    ran = subprocess.run(
        ["bash", "-c", command.replace("http://127.0.0.1:8000", api.url)], check=True, capture_output=True, text=True
    )
    created = json.loads(ran.stdout)
    assert (created["topics"], created["labels"]) == (["job.failed", "job.succeeded"], {"team": "vision"})
    assert created["key"].startswith("whsec_")


def test_another_key_is_shown_once_as_well(api: ApiServer) -> None:
    webhook = register(api)
    answer = api.http.post(f"/webhooks/{webhook['id']}/rotate")
    assert answer.status_code == 200
    rotated = answer.json()
    assert rotated["key"].startswith("whsec_")
    assert rotated["key"] != webhook["key"]
    assert rotated["id"] == webhook["id"]


def test_what_is_named_is_changed_and_the_rest_stays(api: ApiServer) -> None:
    webhook = register(api, topics=["job.failed"], labels={"team": "vision"}, description="chat")
    path = f"/webhooks/{webhook['id']}"

    changed = api.http.patch(path, json={"topics": [], "url": "http://other.example:8080/x", "labels": None})

    assert changed.status_code == 200, changed.text
    stays = {name: webhook[name] for name in ("id", "labels", "description", "enabled", "created_at")}
    assert changed.json() == stays | {
        "topics": [],
        "url": "http://other.example:8080/x",
        "updated_at": changed.json()["updated_at"],
        "created_by": None,
    }
    assert api.http.get(path).json() == changed.json()
    assert api.http.patch(path, json={"description": None}).json()["description"] is None


def test_a_webhook_is_told_of_a_job_and_the_log_of_deliveries_shows_each_try(api: ApiServer) -> None:
    webhook = register(api, labels={"for": "the log"})
    job_id = api.submit(labels={"for": "the log"})
    with api.database.session_scope() as session:
        claim = deliveries.claim(session, webhook["id"])
        assert claim is not None
        deliveries.conclude(session, claim, Try(at=now(session), took_ms=12, status=None, error="refused"))

    (delivery,) = deliveries_of(api, webhook)

    assert (delivery["topic"], delivery["job_id"], delivery["status"]) == ("job.queued", job_id, "pending")
    assert delivery["payload"]["data"]["job"]["id"] == job_id
    (logged,) = delivery["log"]
    assert (logged["took_ms"], logged["status"], logged["error"]) == (12, None, "refused")


def test_a_page_whose_items_have_all_been_removed_leads_back(api: ApiServer) -> None:
    *_, kept, removed = [register(api)["id"] for _ in range(2)]
    before = api.http.get("/webhooks", params={"size": 1000}).json()["items"]
    page = api.http.get("/webhooks", params={"size": len(before) - 1}).json()
    api.http.delete(f"/webhooks/{removed}")

    empty = api.http.get("/webhooks", params={"size": 1, "cursor": page["next_page"]}).json()
    last = api.http.get("/webhooks", params={"size": 1, "cursor": empty["previous_page"]})

    assert empty["items"] == []
    assert [each["id"] for each in last.json()["items"]] == [kept], last.text


def test_deliveries_come_in_pages_newest_first(api: ApiServer) -> None:
    webhook = register(api)
    path = f"/webhooks/{webhook['id']}"
    sent = [api.http.post(f"{path}/test").json()["id"] for _ in range(3)]

    first = api.http.get(f"{path}/deliveries", params={"size": 2}).json()
    second = api.http.get(f"{path}/deliveries", params={"size": 2, "cursor": first["next_page"]}).json()

    assert [each["id"] for each in (*first["items"], *second["items"])] == sent[::-1]
    assert second["next_page"] is None


def test_a_test_is_sent_whatever_the_topics_and_is_about_no_job(api: ApiServer) -> None:
    webhook = register(api, topics=["job.failed"])
    answer = api.http.post(f"/webhooks/{webhook['id']}/test")
    assert answer.status_code == 200
    assert (answer.json()["topic"], answer.json()["job_id"], answer.json()["status"]) == (
        "webhook.test",
        None,
        "pending",
    )
    assert answer.json() in deliveries_of(api, webhook)


def test_a_webhook_that_is_disabled_gives_up_what_it_was_not_told_and_has_it_again_once_it_is_enabled(
    api: ApiServer,
) -> None:
    webhook = register(api)
    path = f"/webhooks/{webhook['id']}"
    delivery = api.http.post(f"{path}/test").json()
    again = f"{path}/deliveries/{delivery['id']}/redeliver"

    assert api.http.patch(path, json={"enabled": False}).json()["enabled"] is False
    assert deliveries_of(api, webhook)[0]["status"] == "given_up"
    for refused in (api.http.post(again), api.http.post(f"{path}/test")):
        assert refused.status_code == 409
        assert "enable it first" in refused.json()["detail"]

    api.http.patch(path, json={"enabled": True})
    sent = api.http.post(again)
    assert (sent.status_code, sent.json()["status"], sent.json()["tries"]) == (200, "pending", 0)
    assert sent.json()["message_id"] == delivery["message_id"]


def test_a_webhook_that_was_removed_is_there_no_more(api: ApiServer) -> None:
    webhook = register(api)
    path = f"/webhooks/{webhook['id']}"
    delivery = api.http.post(f"{path}/test").json()

    assert api.http.delete(path).status_code == 204

    assert not [each for each in api.http.get("/webhooks").json()["items"] if each["id"] == webhook["id"]]
    requests: list[tuple[str, str]] = [
        ("GET", path),
        ("PATCH", path),
        ("DELETE", path),
        ("GET", f"{path}/deliveries"),
        ("POST", f"{path}/rotate"),
        ("POST", f"{path}/test"),
        ("POST", f"{path}/deliveries/{delivery['id']}/redeliver"),
    ]
    for method, place in requests:
        answer = api.http.request(method, place, json={} if method == "PATCH" else None)
        assert answer.status_code == 404, (method, place, answer.text)
        assert f"no webhook {webhook['id']}" in answer.json()["detail"]


def test_a_delivery_of_another_webhook_is_not_sent_again(api: ApiServer) -> None:
    one, other = register(api), register(api)
    delivery = api.http.post(f"/webhooks/{one['id']}/test").json()
    answer = api.http.post(f"/webhooks/{other['id']}/deliveries/{delivery['id']}/redeliver")
    assert answer.status_code == 404
    assert f"has no delivery {delivery['id']}" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://127.0.0.1/", "127.0.0.1 is not public"),
        ("http://127.0.0.1:8000/jobs", "127.0.0.1 is not public"),
        ("http://localhost/", "localhost has the address 127.0.0.1, which is not public"),
        ("http://LOCALHOST./", "is not public"),
        ("http://a.localhost/", "is not public"),
        ("http://0x7f000001/", "127.0.0.1 is not public"),
        ("http://2130706433/", "127.0.0.1 is not public"),
        ("http://0177.1/", "127.0.0.1 is not public"),
        ("http://[::ffff:127.0.0.1]/", "is not public"),
        ("http://[::1]/", "::1 is not public"),
        ("http://169.254.169.254/latest/meta-data/", "169.254.169.254 is not public"),
        ("http://192.168.1.1/", "RANKZERO_WEBHOOK_ALLOW"),
        ("http://100.64.0.1/", "is not public"),
        ("http://[64:ff9b::a00:1]/", "is not public"),
        ("https://user:password@hooks.example/", "user name or password"),
        ("https://user@hooks.example/", "user name or password"),
        ("ftp://hooks.example/", "http"),
        ("file:///etc/passwd", "http"),
        ("hooks.example", "URL"),
        ("https://" + "a" * 3000, "2048"),
        ("", "URL"),
    ],
)
def test_a_url_that_nothing_is_sent_to_is_refused_when_it_is_registered_or_set(
    api: ApiServer, url: str, said: str
) -> None:
    webhook = register(api)
    for answer in (
        api.post("/webhooks", {"url": url}),
        api.http.patch(f"/webhooks/{webhook['id']}", json={"url": url}),
    ):
        assert list(fields_of(answer)) == ["url"]
        assert said in fields_of(answer)["url"]


@pytest.mark.parametrize(
    "url", ["http://10.20.30.40:9000/", "http://hooks.localhost/", "https://münchen.example/ä?b=c"]
)
def test_what_the_operator_allows_and_any_other_name_is_taken(api: ApiServer, url: str) -> None:
    webhook = register(api, url=url)
    assert httpx2.URL(webhook["url"]).host == httpx2.URL(url).host


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"topics": ["job.exploded"]}, "topics.0"),
        ({"topics": "job.failed"}, "topics"),
        ({"topics": ["webhook.test"]}, "topics.0"),
        ({"labels": {"a=b": "c"}}, "labels"),
        ({"description": "x" * 256}, "description"),
        ({"description": "\x00"}, "description"),
        ({"enabled": "yes"}, "enabled"),
        ({"key": "whsec_mine"}, "key"),
        ({"created_by": "somebody"}, "created_by"),
    ],
)
def test_a_field_that_is_wrong_or_not_there_is_named(api: ApiServer, fields: dict[str, object], field: str) -> None:
    (named,) = fields_of(api.post("/webhooks", {"url": URL} | fields))
    assert named.startswith(field)


def test_with_no_key_of_the_service_no_webhook_is_registered_and_the_way_out_is_said(
    api: ApiServer, api_database: str, tmp_path: Path
) -> None:
    webhook = register(api)
    with ApiServer(api_database, tmp_path) as keyless:
        for answer in (keyless.post("/webhooks", {"url": URL}), keyless.http.post(f"/webhooks/{webhook['id']}/rotate")):
            assert answer.status_code == 409
            assert "python -m jobs.sealing" in answer.json()["detail"]


def test_what_is_done_with_webhooks_is_in_the_audit_without_their_keys(api: ApiServer) -> None:
    webhook = register(api, description="audited")
    path = f"webhooks/{webhook['id']}"
    api.http.patch(f"/{path}", json={"enabled": False})
    api.http.delete(f"/{path}")

    events = api.http.get("/audit", params={"subject": path}).json()["items"]

    assert sorted(each["action"] for each in events) == ["change_webhook", "create_webhook", "delete_webhook"]
    assert webhook["key"] not in str(events)
