"""What the client sends again, and what it never does: lost answers, services that are away, redirects."""

import logging
import time
from collections.abc import Iterator
from contextlib import ExitStack
from email.utils import formatdate
from pathlib import Path

import pytest

from jobs.sealing import make_key
from jobs.states import Outcome
from rankzero import Client
from rankzero.errors import RefusedError, UnreachableError
from tests.api_server import TRAIN, ApiServer
from tests.integration.conftest import copy_of_sqlite
from tests.integration.guarded_api import GuardedApi
from tests.integration.running_job import start_job
from tests.integration.scripted_server import Scripted, scripted_server
from tests.ports import PortClaim
from tests.proxy import Proxy

AWAY = Scripted(503, {"Retry-After": "0"}, {"detail": "the database does not answer; try again later"})
READY = Scripted(200, {}, {"status": "ready"})
ME = Scripted(200, {}, {"user": None, "role": "admin", "token_id": None, "access": "loopback"})


@pytest.fixture(scope="module")
def api(migrated_sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """The API on one engine: what is lost on the way to it has nothing to do with its database."""
    folder = tmp_path_factory.mktemp("api")
    make_key(folder / "key")
    with ApiServer(copy_of_sqlite(migrated_sqlite_template, folder), folder, key_file=folder / "key") as server:
        yield server


def test_a_submission_whose_answer_is_lost_is_one_job(api: ApiServer) -> None:
    with Proxy(api.url) as proxy, Client(proxy.url) as client:
        proxy.lose_answers_to(b"POST /jobs ", share=0.6)
        jobs = [client.submit(device="0", train=TRAIN, name=f"once {number}") for number in range(6)]

        assert proxy.lost_answers > 3
        for number, job in enumerate(jobs):
            assert [found.id for found in client.list(name=f"once {number}")] == [job.id]


def test_a_key_of_ones_own_gives_another_client_the_same_job(api: ApiServer) -> None:
    with api.client() as one, api.client() as other:
        first = one.submit(device="0", train=TRAIN, idempotency_key="nightly")
        assert other.submit(device="0", train=TRAIN, idempotency_key="nightly").id == first.id
        clone = one.clone(first.id, idempotency_key="copy")
        assert other.clone(first.id, idempotency_key="copy").id == clone.id
        with pytest.raises(RefusedError, match="was given to another"):
            other.submit(device="1", train=TRAIN, idempotency_key="nightly")


def test_a_verb_whose_answer_is_lost_has_been_followed_and_is_no_error(api: ApiServer) -> None:
    job_id = api.submit()
    with Proxy(api.url) as proxy, Client(proxy.url) as client:
        proxy.lose_answers_to(b"/quotas/", share=0.6)
        for number in range(4):
            assert client.set_quota("user", f"u{number}", max_devices=2).max_devices == 2
        for number in range(4):
            client.delete_quota("user", f"u{number}")
        proxy.lose_answers_to(b" /jobs/", share=0.6)
        assert [client.pause(job_id).state for _ in range(3)] == ["paused"] * 3
        assert client.change(job_id, priority=90).priority == 90
        assert client.resume(job_id, device="1").state == "queued"
        assert client.cancel(job_id).state == "cancelled"
        assert proxy.lost_answers > 5


def test_a_change_on_a_condition_whose_answer_is_lost_is_not_kept_from_itself(api: ApiServer) -> None:
    with Proxy(api.url) as proxy, Client(proxy.url) as client:
        proxy.lose_answers_to(b"PATCH /jobs/", share=0.6)
        job = client.get(api.submit(labels={"old": "1"}))
        for priority in range(60, 66):
            job = client.change(job.id, priority=priority, labels={"at": str(priority), "old": None}, seen=job)
            assert (job.priority, job.labels) == (priority, {"at": str(priority)})
        assert proxy.lost_answers > 3


def test_a_limited_rate_is_waited_out(migrated_sqlite_template: Path, tmp_path: Path) -> None:
    url = copy_of_sqlite(migrated_sqlite_template, tmp_path)
    with GuardedApi(url, tmp_path, rate_limit=2) as api, Client(api.url, token=api.tokens["alice"]) as client:
        assert [client.me().user for _ in range(7)] == ["alice"] * 7
        assert '"status": 429' in api.log.read_text()


def test_a_retry_whose_answer_is_lost_is_no_error_and_one_of_a_job_that_did_not_fail_is(api: ApiServer) -> None:
    runs = [start_job(api.database, api.submit(device="0,1")) for _ in range(3)]
    for run in runs:
        run.end(Outcome.FAILED)
    with Proxy(api.url) as proxy, Client(proxy.url) as client:
        proxy.lose_answers_to(b"/retry ", share=0.6)
        assert [client.retry(run.job_id).state for run in runs] == ["queued"] * 3
        assert proxy.lost_answers > 0
        proxy.lose_answers_to(b"", share=0)
        with pytest.raises(RefusedError, match="waits in the line already"):
            client.retry(runs[0].job_id)


def test_a_token_whose_text_is_lost_is_named_and_users_and_webhooks_are_made_once(api: ApiServer) -> None:
    with Proxy(api.url) as proxy, Client(proxy.url) as client:
        proxy.lose_answers_to(b"POST /", share=0.5)
        made: list[int] = []
        named: list[str] = []
        client.create_user("erin", role="viewer")
        for _ in range(6):
            try:
                made.append(client.create_token("lost", user="erin").id)
            except RefusedError as refused:
                named.append(f"{refused.status}: {refused}")
        webhooks = [client.create_webhook(f"https://example.org/{number}") for number in range(2)]
        tokens = list(client.tokens(user="erin"))
        assert len(tokens) == len(made) + len(named) == 6
        assert made
        for token in tokens:
            assert (token.id in made) != any(each.startswith("409: ") and f"token {token.id}" in each for each in named)
        assert {each.id for each in client.webhooks()} == {each.id for each in webhooks}


def test_what_was_not_there_before_its_removal_is_an_error(api: ApiServer) -> None:
    with api.client() as client, pytest.raises(RefusedError, match="no quota"):
        client.delete_quota("user", "nobody")


def test_a_service_that_is_away_is_asked_again_for_as_long_as_there_is_patience() -> None:
    with scripted_server(AWAY, AWAY, ME) as server, Client(server.url) as client:
        assert client.me().role == "admin"
        assert len(server.received) == 3
    with scripted_server(AWAY) as server, Client(server.url, patience_s=0.5) as client:
        begun = time.monotonic()
        with pytest.raises(UnreachableError, match="the database does not answer"):
            client.me()
        assert 2 <= len(server.received) < 10
        assert time.monotonic() - begun < 10


@pytest.mark.parametrize("status", [502, 504])
def test_a_proxy_whose_service_is_away_is_asked_again(status: int) -> None:
    with scripted_server(Scripted(status, {}, b"<html>"), ME) as server, Client(server.url) as client:
        assert client.me().role == "admin"


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_nothing_is_sent_before_the_time_that_the_service_asks_for(form: str) -> None:
    at = int(time.time()) + 2
    later = {"Retry-After": "1" if form == "seconds" else formatdate(at, usegmt=True)}
    with (
        scripted_server(Scripted(429, later, {"detail": "too often"}), ME) as server,
        Client(server.url) as client,
    ):
        begun = time.time()
        client.me()
        assert time.time() >= (begun + 1 if form == "seconds" else at)


def test_a_wait_that_is_longer_than_ones_patience_is_not_begun() -> None:
    later = {"Retry-After": "3600"}
    with scripted_server(Scripted(429, later, {"detail": "too often"})) as server, Client(server.url) as client:
        with pytest.raises(RefusedError, match="too often"):
            client.me()
        assert len(server.received) == 1


def test_what_makes_something_is_sent_again_under_its_key_and_a_message_is_not_sent_twice() -> None:
    with scripted_server(AWAY, Scripted(422, {}, {"detail": "no"})) as server, Client(server.url) as client:
        with pytest.raises(RefusedError, match="no"):
            client.create_user("bob", role="viewer")
        keys = [request.headers["Idempotency-Key"] for request in server.received]
        assert len(keys) == 2
        assert keys[0] == keys[1]
    with scripted_server(AWAY) as server, Client(server.url) as client:
        with pytest.raises(UnreachableError):
            client.test_webhook(1)
        assert len(server.received) == 1


def test_whether_a_service_is_ready_is_said_at_once() -> None:
    with scripted_server(AWAY, READY) as server, Client(server.url) as client:
        assert [client.is_ready(), client.is_ready()] == [False, True]


def test_a_service_that_was_there_is_waited_for_as_long_as_there_is_patience() -> None:
    with ExitStack() as stack:
        with scripted_server(ME) as server:
            client = stack.enter_context(Client(server.url, patience_s=0.5))
            client.me()
        begun = time.monotonic()
        with pytest.raises(UnreachableError, match="answers no more"):
            client.me()
        assert time.monotonic() - begun > 0.1


def test_where_nothing_listens_the_error_says_at_once_how_to_start_a_service() -> None:
    claim = PortClaim()
    begun = time.monotonic()
    with Client(f"http://127.0.0.1:{claim.port}") as client, pytest.raises(UnreachableError, match="rankzero up"):
        client.get(1)
    assert time.monotonic() - begun < 20  # of the 60 s for which a service that was there would be tried
    claim.release()


def test_a_token_is_not_sent_on_to_where_a_redirect_leads_and_is_in_no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with scripted_server(ME) as elsewhere:
        redirect = Scripted(307, {"Location": f"{elsewhere.url}/me"})
        with scripted_server(redirect) as server, Client(server.url, token="rz_mine") as client:
            with pytest.raises(RefusedError, match="sends its callers on to") as refused:
                client.me()
            assert server.received[0].headers["Authorization"] == "Bearer rz_mine"
            assert "rz_mine" not in str(refused.value)
            assert "send_request_headers" in caplog.text  # as much as there is, was logged
            assert "rz_mine" not in caplog.text
        assert elsewhere.received == []


def test_a_service_on_this_machine_is_asked_through_no_proxy(api: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    with scripted_server(Scripted(502)) as other:
        monkeypatch.setenv("HTTP_PROXY", other.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        with Client(api.url, token="rz_mine") as client:
            assert client.me().role == "admin"
        assert other.received == []
