"""Following the service over HTTP: one stream of events, which resumes with nothing missed and nothing twice."""

import json
import re
import shlex
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest
from sqlalchemy import delete, text

from api.feed import reader
from jobs.database import Database
from jobs.feed import Position, Topic
from jobs.states import Outcome
from jobs.store import feed, maintenance
from jobs.store.reports import CheckpointFile, LogPiece, MetricPoint
from jobs.tables import FeedEntry
from tests.api_server import ApiServer
from tests.integration.events import Event, events_of
from tests.integration.running_job import RunningJob, start_job
from tests.waiting import wait_until

AT = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)


def settle(api: ApiServer) -> None:
    """Wait until all that earlier tests have done can be told: whatever writes on the server meanwhile, such as its own
    autovacuum, holds it back, and it would come after the hello of the next stream."""

    def is_held_back() -> bool:
        with api.database.session_scope(read_only=True) as session:
            return feed.held_back_s(session) > 0

    wait_until(lambda: not is_held_back(), timeout_s=60, what="what has happened to be told")


@contextmanager
def following(api: ApiServer, *, last_event_id: str | None = None, **params: Any) -> Iterator[Iterator[Event]]:
    settle(api)
    headers = {} if last_event_id is None else {"Last-Event-ID": last_event_id}
    with (
        httpx2.Client(base_url=api.url, timeout=30) as client,
        client.stream("GET", "/events", params=params, headers=headers) as answer,
    ):
        assert answer.status_code == 200, answer.read()
        yield events_of(answer)


def next_of(events: Iterator[Event], kind: str) -> Event:
    return next(event for event in events if event.kind == kind)


@pytest.fixture
def run(api: ApiServer) -> RunningJob:
    """A job that runs."""
    return start_job(api.database, api.submit(device="0,1"))


def test_a_stream_tells_first_where_it_begins_and_then_what_happens(api: ApiServer) -> None:
    with following(api) as events:
        hello = next(events)
        job_id = api.submit()
        submitted = next(events)

    assert (hello.kind, hello.data) == ("hello", {"position": hello.id, "held_back_s": 0.0})
    assert submitted.kind == "jobs"
    assert submitted.data["job_id"] == job_id
    assert submitted.data["event"] == api.http.get(f"/jobs/{job_id}/events").json()["items"][0]


def test_an_answer_to_a_follower_is_kept_by_nobody_on_its_way(api: ApiServer) -> None:
    with httpx2.Client(base_url=api.url) as client, client.stream("GET", "/events") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert "no-store" in answer.headers["cache-control"]
        assert answer.headers["x-accel-buffering"] == "no"


def test_what_a_run_reports_is_told_as_the_lists_show_it(api: ApiServer, run: RunningJob) -> None:
    job = f"/jobs/{run.job_id}"
    with following(api, jobs=run.job_id) as events:
        next(events)
        run.add(
            metrics=[MetricPoint("точность", 1, 1, AT, 0.1), MetricPoint("loss", 1, 1, AT, None, "-inf")],
            logs=[LogPiece(0, 0, "привет\n"), LogPiece(1, 0, "second\nline\n")],
            checkpoint=CheckpointFile("/runs/1.pt", 1, 1, "0" * 64, 5_000_000_000, True, {"loss": None}, AT),
            progress={"step": 1, "total_steps": 10},
        )
        told = {event.kind: event.data for event in (next(events) for _ in range(4))}

    def shown(path: str) -> Any:
        return sorted(api.http.get(job + path).json()["items"], key=str)

    assert all(data["job_id"] == run.job_id for data in told.values())
    assert sorted(told["metrics"]["items"], key=str) == shown("/metrics")
    assert sorted(told["logs"]["items"], key=str) == shown("/logs")
    assert told["checkpoints"]["items"] == shown("/checkpoints")
    assert told["jobs"]["progress"] == api.http.get(job).json()["progress"]


def test_what_becomes_of_a_host_is_told(api: ApiServer, run: RunningJob) -> None:
    name = run.placement.host_name
    with following(api, topics="hosts") as events:
        next(events)
        with api.database.session_scope() as session:
            maintenance.drain(session, name)
        assert next(events).data == {"host": name, "change": "drained"}
    with api.database.session_scope() as session:
        maintenance.take_back(session, name)


def test_only_the_jobs_and_topics_that_are_asked_for_are_told(api: ApiServer, run: RunningJob) -> None:
    other = start_job(api.database, api.submit(device="0,1"))
    with following(api, jobs=f"{run.job_id},{other.job_id}", topics="logs,metrics") as events:
        next(events)
        api.submit()
        run.add(progress={"step": 1}, logs=[LogPiece(0, 0, "one\n")])
        other.add(metrics=[MetricPoint("loss", 1, 1, AT, 0.5)])
        kinds = [(event.kind, event.data["job_id"]) for event in (next(events), next(events))]
    assert kinds == [("logs", run.job_id), ("metrics", other.job_id)]


def test_a_stream_resumes_with_nothing_missed_and_nothing_twice(api: ApiServer) -> None:
    with following(api) as events:
        begin = next(events).id
        expected = [api.submit() for _ in range(8)]
        seen = [next(events).data["job_id"] for _ in range(3)]
        last = next(events)
        seen.append(last.data["job_id"])
    expected += [api.submit() for _ in range(3)]

    # A browser sends the header and, since its address stays the same, the parameter of the first time.
    with following(api, last_event_id=last.id, after=begin) as events:
        assert next(events).id == last.id
        seen += [next(events).data["job_id"] for _ in range(7)]
        expected.append(api.submit())
        seen.append(next(events).data["job_id"])

    assert seen == expected


def test_more_than_is_read_at_once_is_caught_up_with_in_order(api: ApiServer) -> None:
    with following(api) as events:
        begin = next(events).id
    count = 2 * reader.BATCH + 10
    with api.database.session_scope() as session:
        for number in range(count):
            session.add(_host_news(session, api.database, number))
    with following(api, after=begin, topics="hosts") as events:
        next(events)
        assert [next(events).data["change"] for _ in range(count)] == [str(number) for number in range(count)]


def test_a_stream_that_asks_for_what_is_not_kept_any_more_is_told_to_read_anew(api: ApiServer) -> None:
    with following(api) as events:
        next(events)
        api.submit()
        old = next(events).id
        api.submit()
        newest = next(events).id
    with api.database.session_scope() as session:
        session.execute(delete(FeedEntry).where(FeedEntry.id <= Position.parse(old).id))

    with following(api, last_event_id=old) as events:
        hello, reset = next(events), next(events)
        job_id = api.submit()
        assert next(events).data["job_id"] == job_id

    # Who loses the connection in between asks for the same once more, and is told.
    assert (hello.kind, hello.id, hello.data["position"]) == ("hello", "", newest)
    assert (reset.kind, reset.id, reset.data) == ("reset", newest, {"position": newest})


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"jobs": "1,x"}, "jobs"),
        ({"jobs": "0"}, "jobs"),
        ({"jobs": f"{2**63}"}, "jobs"),
        ({"topics": "jobs,weather"}, "topics"),
        ({"after": "12"}, "after"),
        ({"since": "12-1"}, "since"),
    ],
)
def test_what_cannot_be_followed_is_refused_by_its_name(api: ApiServer, params: dict[str, str], field: str) -> None:
    answer = api.http.get("/events", params=params)
    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["errors"]] == [field]


def test_a_last_event_id_that_is_none_is_refused(api: ApiServer) -> None:
    answer = api.http.get("/events", headers={"Last-Event-ID": "7"})
    assert answer.status_code == 422
    assert "not a position of the feed" in answer.json()["detail"]


def test_a_job_that_is_not_there_cannot_be_followed(api: ApiServer) -> None:
    assert api.http.get("/events", params={"jobs": 2**62}).status_code == 404


def test_a_client_that_reads_the_job_after_hello_sees_each_state_in_one_of_the_two(
    api: ApiServer, run: RunningJob
) -> None:
    with following(api, jobs=run.job_id, topics="jobs") as events:
        next(events)
        assert api.http.get(f"/jobs/{run.job_id}").json()["state"] == "running"
        run.end(Outcome.SUCCEEDED)
        assert next_of(events, "jobs").data["event"]["to_state"] == "succeeded"


def test_the_end_of_the_server_ends_a_stream_and_does_not_wait_for_its_client(sqlite_url: str, tmp_path: Path) -> None:
    with ApiServer(sqlite_url, tmp_path) as api, following(api) as events:
        hello = next(events)
        # One that never reads would keep the server waiting for as long as it has patience.
        with socket.create_connection(("127.0.0.1", int(api.url.rpartition(":")[2]))) as deaf:
            deaf.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            wait_until(lambda: b"hello" in deaf.recv(4096), timeout_s=10, what="the other stream to begin")
            begun = time.monotonic()
            api.stop()
            took_s = time.monotonic() - begun
            assert list(events) == []
    assert took_s < 4, "of the 5 that a connection whose stream does not end is waited for"
    assert hello.kind == "hello"


def _host_news(session: Any, database: Database, number: int) -> FeedEntry:
    xid = 0 if database.is_sqlite else session.scalar(text("SELECT pg_current_xact_id()::text::bigint"))
    detail = {"host": "alpha", "change": str(number)}
    return FeedEntry(xid=xid, at=AT, topic=Topic.HOSTS, job_id=None, detail=detail)


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl here")
def test_the_command_on_the_page_of_streams_follows(api: ApiServer) -> None:
    page = (Path(__file__).parents[2] / "docs/streams.md").read_text()
    (command,) = re.findall(r"^\$ (curl .*/events.*)$", page, re.MULTILINE)
    words = shlex.split(command.replace("http://127.0.0.1:8000", api.url))
    settle(api)
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as curl:
        try:
            assert curl.stdout is not None
            assert curl.stdout.readline() == "event: hello\n"
            job_id = api.submit()
            told = next(line for line in curl.stdout if line.startswith('data: {"job_id"'))
            assert json.loads(told.removeprefix("data: "))["job_id"] == job_id
        finally:
            curl.kill()
