"""Following a job with the client: its past and what happens, over outages, and its end."""

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from jobs.states import Outcome
from jobs.store import feed
from jobs.store.reports import LogPiece, MetricPoint
from rankzero import Client
from rankzero.errors import RefusedError, UnreachableError, UsageError, WaitTimeoutError
from rankzero.models import Event
from rankzero.news import CheckpointNews, EventNews, Hello, HostNews, LogNews, MetricNews, News, ProgressNews
from tests.api_server import TRAIN, ApiServer
from tests.integration.running_job import RunningJob, saved, start_job
from tests.proxy import Proxy
from tests.tls_front import TlsFront

AT = datetime(2026, 3, 1, tzinfo=UTC)
ALL = ("jobs", "metrics", "logs", "checkpoints")
STATES = ["queued", "starting", "running", "succeeded"]


@pytest.fixture
def client(api: ApiServer) -> Iterator[Client]:
    with api.client() as client:
        yield client


def report(run: RunningJob, step: int) -> None:
    """Report a step, as a run does."""
    run.add(
        metrics=[MetricPoint("loss", step, 1, AT, 1 / step), MetricPoint("accuracy", step, 1, AT, step / 100)],
        logs=[LogPiece(0, 10 * step, f"step {step:4}\n")],
        progress={"step": step, "total_steps": 100},
    )


def steps_of(news: list[News], name: str) -> list[int]:
    return [value.step for each in news if isinstance(each, MetricNews) for value in each.items if value.name == name]


def states_of(news: list[News]) -> list[str | None]:
    states = [each.event.to_state for each in news if isinstance(each, EventNews)]
    return [state for state in states if state is not None]


def printed(news: list[News]) -> list[str]:
    return [piece.text for each in news if isinstance(each, LogNews) for piece in each.items]


def test_a_job_is_told_from_its_beginning_to_its_end_whenever_one_begins_to_follow(
    api: ApiServer, client: Client
) -> None:
    run = start_job(api.database, api.submit(device="0,1"))
    report(run, 1)
    run.add(checkpoint=saved("/runs/1.pt"))
    news: list[News] = []
    for each in client.follow(run.job_id, topics=ALL):
        news.append(each)
        if states_of(news)[-1:] == ["running"] and len(steps_of(news, "loss")) == 1:
            report(run, 2)
            run.add(checkpoint=saved("/runs/2.pt", step=2))
            run.end(Outcome.SUCCEEDED)

    late = list(client.follow(run.job_id, topics=ALL))
    for told in (news, late):
        assert states_of(told) == STATES
        assert (steps_of(told, "loss"), steps_of(told, "accuracy")) == ([1, 2], [1, 2])
        assert printed(told) == ["step    1\n", "step    2\n"]
        files = [file for each in told if isinstance(each, CheckpointNews) for file in each.items]
        assert {file.path: file.best for file in files} == {"/runs/1.pt": False, "/runs/2.pt": True}
    assert isinstance(news[-1], EventNews)
    assert [each.progress.step for each in news if isinstance(each, ProgressNews)] == [2]


def test_only_the_wanted_topics_are_told_and_the_end_ends_them_all_the_same(api: ApiServer, client: Client) -> None:
    run = start_job(api.database, api.submit(device="0,1"))
    report(run, 1)
    news = []
    for each in client.follow(run.job_id, topics=["logs"]):
        news.append(each)
        if len(news) == 1:
            report(run, 2)
            run.end(Outcome.FAILED, failure={"cause": "data", "message": "none"})
    assert printed(news) == ["step    1\n", "step    2\n"]
    assert {type(each) for each in news} == {LogNews}


def test_a_topic_that_is_none_and_a_job_that_is_none_are_errors(client: Client) -> None:
    with pytest.raises(UsageError, match="'hosts' is no topic"):
        next(client.follow(1, topics=["hosts"]))
    with pytest.raises(RefusedError, match="no job 999999"):
        next(client.follow(999_999))


def test_a_job_that_failed_and_was_retried_is_followed_to_its_next_end(api: ApiServer, client: Client) -> None:
    run = start_job(api.database, api.submit(device="0,1"))
    run.end(Outcome.FAILED, failure={"cause": "data", "message": "none"})
    client.retry(run.job_id)
    news = []
    for each in client.follow(run.job_id):
        news.append(each)
        if states_of(news)[-2:] == ["failed", "queued"]:
            client.cancel(run.job_id)
    assert states_of(news) == ["queued", "starting", "running", "failed", "queued", "cancelled"]


def test_nothing_is_missed_and_nothing_comes_twice_while_connections_break(api: ApiServer) -> None:
    run = start_job(api.database, api.submit(device="0,1"))
    report(run, 1)
    draws = random.Random(5)
    stop = threading.Event()

    def train() -> None:
        for step in range(2, 60):
            report(run, step)
        run.end(Outcome.SUCCEEDED)

    with Proxy(api.url) as proxy, Client(proxy.url) as client:

        def break_off() -> None:
            while not stop.wait(draws.uniform(0.05, 0.3)):
                with proxy.refusing():
                    pass

        client.me()
        threads = [threading.Thread(target=each) for each in (train, break_off)]
        for thread in threads:
            thread.start()
        try:
            news = list(client.follow(run.job_id, topics=ALL, timeout_s=60))
        finally:
            stop.set()
            for thread in threads:
                thread.join()
    assert states_of(news) == STATES
    assert Counter(steps_of(news, "loss")) == Counter(range(1, 60))
    assert printed(news) == [f"step {step:4}\n" for step in range(1, 60)]


def test_a_job_is_followed_and_waited_for_through_tls(
    api: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = start_job(api.database, api.submit(device="0,1"))
    with TlsFront(api.port, tmp_path) as front:
        with Client(front.url) as stranger, pytest.raises(UnreachableError, match="certificate"):
            stranger.get(run.job_id)
        monkeypatch.setenv("SSL_CERT_FILE", str(front.certificate))
        with Client(front.url) as client:
            assert client.get(run.job_id).state == "running"
            with pytest.raises(WaitTimeoutError):
                client.wait(run.job_id, timeout_s=0.5)
            news: list[News] = []
            for each in client.follow(run.job_id, topics=ALL):
                news.append(each)
                if states_of(news)[-1:] == ["running"] and not steps_of(news, "loss"):
                    report(run, 1)
                    run.end(Outcome.SUCCEEDED)
            assert states_of(news) == STATES
            assert steps_of(news, "loss") == [1]
            assert client.wait(run.job_id, timeout_s=30).state == "succeeded"


def test_watching_yields_each_change_and_ends_with_the_job(api: ApiServer, client: Client) -> None:
    job_id = api.submit(device="0,1")
    run: RunningJob | None = None
    seen = []
    for job in client.watch(job_id, poll_s=0.01):
        seen.append((job.state, job.progress.step if job.progress else None))
        if len(seen) == 1:
            run = start_job(api.database, job_id)
        elif run is not None and seen[-1] == ("running", None):
            run.add(progress={"step": 1, "total_steps": 2})
        elif run is not None and seen[-1] == ("running", 1):
            run.end(Outcome.SUCCEEDED)
    assert seen[0] == ("queued", None)
    assert seen[-3:] == [("running", None), ("running", 1), ("succeeded", 1)]


def test_a_job_that_goes_back_to_the_line_is_watched_on(api: ApiServer, client: Client) -> None:
    run = start_job(api.database, api.submit(device="0,1"))
    seen = []
    for job in client.watch(run.job_id, poll_s=0.01):
        seen.append(job.state)
        if seen == ["running"]:
            run.end(Outcome.LOST, failure={"cause": "lost", "message": "away"})
        elif seen[-1] == "queued":
            client.cancel(run.job_id)
    assert seen == ["running", "queued", "cancelled"]


def test_waiting_for_a_job_that_is_over_returns_it_at_once(api: ApiServer, client: Client) -> None:
    run = start_job(api.database, api.submit(device="0,1"))
    run.end(Outcome.SUCCEEDED)
    assert client.wait(run.job_id, timeout_s=10).state == "succeeded"


def test_waiting_ends_with_the_job(api: ApiServer, client: Client) -> None:
    run = start_job(api.database, api.submit(device="0,1"))
    ender = threading.Timer(0.3, run.end, args=(Outcome.SUCCEEDED,))
    ender.start()
    assert client.wait(run.job_id, timeout_s=30).state == "succeeded"
    ender.join()


@pytest.mark.parametrize("timeout_s", [0, 0.05, 1])
def test_waiting_and_following_end_at_their_time_limit_and_the_job_goes_on(client: Client, timeout_s: float) -> None:
    job = client.submit(device="cuda:9", train=TRAIN)
    for follow in (client.wait, lambda job_id, timeout_s: list(client.follow(job_id, timeout_s=timeout_s))):
        begun = time.monotonic()
        with pytest.raises(WaitTimeoutError, match=f"still queued after {timeout_s:g} s"):
            follow(job.id, timeout_s=timeout_s)
        # Before the service would say that it is there, which it does every 15 s.
        assert timeout_s <= time.monotonic() - begun < timeout_s + 10
    assert client.get(job.id).state == "queued"


def test_following_outlasts_a_restart_of_the_service(api: ApiServer, client: Client) -> None:
    run = start_job(api.database, api.submit(device="0,1"))
    jobs = client.watch(run.job_id)
    news = client.follow(run.job_id)
    assert next(jobs).state == "running"
    assert isinstance(next(news), EventNews)
    states: list[str] = []
    told: list[News] = []
    waited: list[str] = []
    followers = [
        threading.Thread(target=lambda: states.extend(job.state for job in jobs)),
        threading.Thread(target=lambda: told.extend(news)),
        threading.Thread(target=lambda: waited.append(client.wait(run.job_id).state)),
    ]
    for follower in followers:
        follower.start()
    api.kill()
    run.end(Outcome.SUCCEEDED)
    api.start()
    for follower in followers:
        follower.join(timeout=30)
    assert (states[-1], states_of(told)[-1], waited) == ("succeeded", "succeeded", ["succeeded"])


def test_an_outage_longer_than_ones_patience_ends_the_following(api: ApiServer) -> None:
    run = start_job(api.database, api.submit(device="0,1"))
    with Proxy(api.url) as proxy, Client(proxy.url, patience_s=0.5) as client:
        news = client.follow(run.job_id)
        assert isinstance(next(news), EventNews)
        with proxy.refusing(), pytest.raises(UnreachableError):
            list(news)
        with proxy.refusing(), pytest.raises(WaitTimeoutError, match="out of sight"):
            client.wait(run.job_id, timeout_s=0.2)
    run.end(Outcome.SUCCEEDED)


def test_what_the_service_no_longer_keeps_of_its_stream_is_read_from_the_jobs_past(api: ApiServer) -> None:
    run = start_job(api.database, api.submit(device="0,1"))
    report(run, 1)
    with Proxy(api.url) as proxy, Client(proxy.url) as client:
        news = client.follow(run.job_id, topics=ALL, timeout_s=60)
        told: list[News] = []
        while states_of(told)[-1:] != ["running"]:
            told.append(next(news))
        with proxy.refusing():
            for step in range(2, 5):
                report(run, step)
            with api.database.session_scope() as session:
                assert feed.forget(session, older_than=timedelta(0)) > 5
        report(run, 5)
        run.end(Outcome.SUCCEEDED)
        told += news
    assert steps_of(told, "loss") == [1, 2, 3, 4, 5]
    assert printed(told) == [f"step {step:4}\n" for step in range(1, 6)]
    assert states_of(told) == STATES


def test_the_stream_goes_on_after_a_news_that_another_client_has_had(api: ApiServer, client: Client) -> None:
    run = start_job(api.database, api.submit(device="0,1"))
    stream = client.stream(jobs=[run.job_id], topics=["metrics", "jobs"])
    assert isinstance(next(stream), Hello)
    report(run, 1)
    first = next(each for each in stream if isinstance(each, MetricNews))
    report(run, 2)
    with api.client() as other:
        rest = other.stream(jobs=[run.job_id], topics=["metrics"], after=first.id)
        assert isinstance(next(rest), Hello)
        second = next(rest)
    assert isinstance(second, MetricNews)
    assert [value.step for value in second.items] == [2, 2]
    run.end(Outcome.SUCCEEDED)


def test_the_stream_tells_of_hosts(api: ApiServer, client: Client) -> None:
    stream = client.stream(topics=["hosts"])
    assert isinstance(next(stream), Hello)
    host = start_job(api.database, api.submit(device="0,1")).placement.host_name
    client.drain(host)
    found = [next(stream), next(stream)]
    assert [(each.host, each.change) for each in found if isinstance(each, HostNews)] == [
        (host, "registered"),
        (host, "drained"),
    ]


def test_what_was_read_of_a_job_while_it_ended_has_its_end_last(api: ApiServer, client: Client) -> None:
    """The past is read after the job was seen to run: its end, which that has then, is told by the stream alone."""
    run = start_job(api.database, api.submit(device="0,1"))
    report(run, 1)

    class Ending(Client):
        def events(self, job_id: int, *, after: int = 0, kinds: Sequence[str] = ()) -> Iterator[Event]:
            report(run, 2)
            run.end(Outcome.SUCCEEDED)
            client.change(job_id, priority=7)
            return super().events(job_id, after=after, kinds=kinds)

    with Ending(api.url) as ending:
        news = list(ending.follow(run.job_id, topics=ALL))
    assert states_of(news) == STATES
    assert steps_of(news, "loss") == [1, 2]
    assert printed(news) == ["step    1\n", "step    2\n"]
    kinds = Counter(each.event.kind for each in news if isinstance(each, EventNews))
    assert kinds["change"] == 1
