"""Submitting, finding and cancelling jobs over HTTP."""

from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from jobs.store import hosts
from jobs.store.hosts import DeviceInfo
from tests.api_server import TRAIN, ApiServer
from tests.servers import ValkeyServer
from tests.waiting import wait_until


def test_a_submitted_job_is_answered_with_201_its_location_and_its_canonical_spec(api: ApiServer) -> None:
    answer = api.post("/jobs", {"name": "first", "device": [0, 1], "priority": 70, "train": TRAIN})

    assert answer.status_code == 201
    job = answer.json()
    assert answer.headers["Location"] == f"/jobs/{job['id']}"
    assert (job["name"], job["state"], job["intent"], job["attempt"]) == ("first", "queued", "run", 0)
    assert (job["spec"]["device"], job["world_size"], job["priority"]) == ("cuda:0,cuda:1", 2, 70)
    assert api.http.get(answer.headers["Location"]).json()["spec"] == job["spec"]


def test_a_job_is_called_by_as_much_of_its_model_as_a_name_has_room_for(api: ApiServer) -> None:
    answer = api.post("/jobs", {"device": "cpu", "train": TRAIN | {"model": "m" * 1024}})
    assert (answer.status_code, answer.json().get("name")) == (201, "m" * 255)


def test_a_job_that_no_host_could_run_is_accepted_with_a_warning_and_waits_with_the_reason(api: ApiServer) -> None:
    with api.database.session_scope() as session:
        hosts.register(session, "small", worker="1:1", run_root="/tmp/runs", devices=[DeviceInfo("cpu:0", "cpu")])

    job = api.post("/jobs", {"device": "cuda:7", "train": TRAIN}).json()

    assert job["warnings"] == ["accepted, but no registered host has cuda:7: the job waits until that changes"]
    assert api.http.get(f"/jobs/{job['id']}").json()["reason"] == "no registered host has cuda:7"


def test_every_time_is_utc_with_its_offset(api: ApiServer) -> None:
    job = api.http.get(f"/jobs/{api.submit()}").json()
    for field in ("created_at", "updated_at", "queued_at"):
        moment = datetime.fromisoformat(job[field])
        assert moment.utcoffset() == timedelta(0)


@pytest.mark.parametrize("name", ["точность", "n" * 255, "🚀 to the moon", "%_\\"])
def test_a_name_comes_back_as_it_was_sent_and_is_found_by_itself(api: ApiServer, name: str) -> None:
    job_id = api.submit(name=name)
    assert api.http.get(f"/jobs/{job_id}").json()["name"] == name
    found = api.http.get("/jobs", params={"name": name}).json()["items"]
    assert [job["id"] for job in found] == [job_id]


@pytest.mark.parametrize(
    ("key", "value"), [("team", "🚀"), ("область", "зрение"), ('a"b', "c"), ("a.b", ""), ("k", "x=y"), ("$", "[0]")]
)
def test_a_label_comes_back_as_it_was_sent_and_finds_its_job_alone(api: ApiServer, key: str, value: str) -> None:
    job_id = api.submit(labels={key: value})
    api.submit(labels={key: value + "?"})
    assert api.http.get(f"/jobs/{job_id}").json()["labels"] == {key: value}
    found = api.http.get("/jobs", params={"label": f"{key}={value}"}).json()["items"]
    assert [job["id"] for job in found] == [job_id]


def test_filters_narrow_each_other_and_repeated_states_widen(api: ApiServer) -> None:
    waiting, ended = (api.submit(name="filtered", labels={"of": "filters"}) for _ in range(2))
    api.http.post(f"/jobs/{ended}/cancel")

    def found(*params: tuple[str, str]) -> list[int]:
        common = [("name", "FILTERED"), ("label", "of=filters"), ("sort", "id")]
        answer = api.http.get("/jobs", params=[*common, *params])
        return [job["id"] for job in answer.json()["items"]]

    assert found() == [waiting, ended]
    assert found(("state", "queued")) == [waiting]
    assert found(("state", "queued"), ("state", "cancelled")) == [waiting, ended]
    assert found(("label", "other=label")) == []


@pytest.mark.parametrize("sort", ["id", "-id", "priority", "-priority", "name", "-name", "created_at", "-created_at"])
def test_pages_hold_every_job_once_in_the_order_asked_for(api: ApiServer, sort: str) -> None:
    label = f"pages{sort}"
    mine = [api.submit(name=f"n{index % 3}", priority=index % 2, labels={"of": label}) for index in range(7)]

    seen, cursor = [], None
    while True:
        params: dict[str, str | int] = {"label": f"of={label}", "sort": sort, "size": 3}
        page = api.http.get("/jobs", params=params | ({"cursor": cursor} if cursor else {})).json()
        seen += page["items"]
        cursor = page["next_page"]
        if cursor is None:
            break

    assert sorted(job["id"] for job in seen) == mine
    key = sort.removeprefix("-")
    keys = [(job[key], job["id"]) for job in seen]
    assert all(first > second if sort.startswith("-") else first < second for first, second in pairwise(keys))


def test_pages_by_name_take_names_with_anything_in_them(api: ApiServer) -> None:
    names = [
        "\x1f" * 255,
        "🚀" * 255,
        "a\rb",
        "a\r",
        "a\nb",
        "a\\\nb",
        "a\\nb",
        "a\\",
        "a~b",
        '"a',
        "2026-11-30T06:00:00Z",
    ]
    mine = [api.submit(name=name, labels={"of": "odd names"}) for name in names]

    seen: list[int] = []
    cursor: str | None = None
    while len(seen) <= len(mine):
        params: dict[str, str | int] = {"label": "of=odd names", "sort": "name", "size": 1}
        answer = api.http.get("/jobs", params=params | ({"cursor": cursor} if cursor else {}))
        assert answer.status_code == 200, answer.text
        seen += [job["id"] for job in answer.json()["items"]]
        cursor = answer.json()["next_page"]
        if cursor is None:
            break

    assert sorted(seen) == mine


def test_jobs_submitted_meanwhile_shift_no_page(api: ApiServer) -> None:
    old = [api.submit(labels={"of": "shift"}) for _ in range(4)]
    first = api.http.get("/jobs", params={"label": "of=shift", "size": 2}).json()
    api.submit(labels={"of": "shift"})
    second = api.http.get("/jobs", params={"label": "of=shift", "size": 2, "cursor": first["next_page"]}).json()
    back = api.http.get("/jobs", params={"label": "of=shift", "size": 2, "cursor": second["previous_page"]}).json()

    assert [job["id"] for job in first["items"] + second["items"]] == old[::-1]
    assert back["items"] == first["items"]


def test_cancelling_a_waiting_job_ends_it_at_once_and_cancelling_again_changes_nothing(api: ApiServer) -> None:
    job_id = api.submit()
    first = api.http.post(f"/jobs/{job_id}/cancel")
    again = api.http.post(f"/jobs/{job_id}/cancel")

    assert (first.status_code, first.json()["state"]) == (200, "cancelled")
    assert again.json() == first.json()
    events = api.http.get(f"/jobs/{job_id}/events").json()["items"]
    assert [(event["kind"], event["to_state"]) for event in events] == [
        ("submitted", "queued"),
        ("intent", None),
        ("state", "cancelled"),
    ]


def test_events_are_followed_from_where_the_last_answer_ended(api: ApiServer) -> None:
    job_id = api.submit()
    before = api.http.get(f"/jobs/{job_id}/events").json()
    assert api.http.get(f"/jobs/{job_id}/events", params={"after": before["after"]}).json() == {
        "items": [],
        "after": before["after"],
    }
    api.http.post(f"/jobs/{job_id}/cancel")
    after = api.http.get(f"/jobs/{job_id}/events", params={"after": before["after"], "limit": 1}).json()
    assert [event["kind"] for event in after["items"]] == ["intent"]


def test_a_submission_wakes_the_planner_through_the_broker(
    database_url: str, valkey: ValkeyServer, tmp_path: Path
) -> None:
    import redis

    with ApiServer(database_url, tmp_path, broker_url=valkey.url) as api, redis.Redis(port=valkey.port) as broker:
        api.submit()
        wait_until(lambda: broker.llen("plan") == 1, timeout_s=10, what="the wake-up in the queue plan")


def test_a_submission_to_a_dead_broker_is_answered_as_fast_as_any(
    database_url: str, valkey: ValkeyServer, tmp_path: Path
) -> None:
    with ApiServer(database_url, tmp_path, broker_url=valkey.url) as api:
        valkey.kill()
        took = [api.post("/jobs", {"device": "cpu", "train": TRAIN}).elapsed.total_seconds() for _ in range(3)]
    assert max(took) < 1
