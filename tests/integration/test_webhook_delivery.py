"""What workers send to webhooks: signed, at least once, and with no receiver waiting for another."""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update
from standardwebhooks import Webhook as Signature
from standardwebhooks import WebhookVerificationError

from jobs.database import Database, now
from jobs.sealing import make_key, seal
from jobs.settings import get_settings
from jobs.spec import JobSpec
from jobs.states import Intent
from jobs.store import deliveries, jobs, outbox, webhooks
from jobs.tables import Delivery, Webhook
from tests.api_server import NO_BROKER, TRAIN
from tests.receiver import Answer, Received, Receiver
from tests.service import Service
from tests.waiting import wait_until
from worker import webhooks as sender
from worker.webhooks import Webhooks

LOOPBACK = "127.0.0.0/8"


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    make_key(tmp_path / "key")
    return tmp_path / "key"


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch, key_file: Path) -> Iterator[None]:
    """What a worker has that may send to receivers on this machine, and looks often."""
    monkeypatch.setenv("RANKZERO_KEY_FILE", str(key_file))
    monkeypatch.setenv("RANKZERO_WEBHOOK_ALLOW", LOOPBACK)
    monkeypatch.setenv("RANKZERO_TICK_S", "0.05")
    get_settings.cache_clear()
    yield
    get_settings.cache_clear()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


@contextmanager
def sending(database: Database) -> Iterator[Webhooks]:
    """The thread of a worker that sends, until the end of the block."""
    thread = Webhooks(database, get_settings())
    thread.start()
    yield thread
    thread.stop()


def held_until(event: threading.Event) -> Callable[[Received], Answer]:
    """What a receiver answers that lets its sender wait until this has happened."""

    def answer(_: Received) -> Answer:
        event.wait(60)
        return Answer()

    return answer


def register(database: Database, url: str) -> tuple[int, str]:
    """Store a webhook; return its id and the key that signs its messages."""
    with database.session_scope() as session:
        webhook, key = webhooks.add(
            session, url=url, topics=[], labels={}, description=None, enabled=True, created_by=None
        )
        return webhook.id, key


def write(database: Database, webhook_id: int, *, count: int = 1) -> list[int]:
    """Write deliveries that are due now; return their ids."""
    with database.session_scope() as session:
        webhook = webhooks.get(session, webhook_id)
        return [outbox.add_test(session, webhook, at=now(session)).id for _ in range(count)]


def log_of(database: Database, webhook_id: int) -> Sequence[Delivery]:
    """Every delivery of a webhook with its tries, oldest first."""
    with database.session_scope(read_only=True) as session:
        return session.scalars(deliveries.select_deliveries(webhook_id)).all()[::-1]


def wait_for(database: Database, webhook_id: int, condition: Callable[[Sequence[Delivery]], bool]) -> None:
    def told() -> str:
        log = [(each.id, [(a.status, a.error) for a in each.log]) for each in log_of(database, webhook_id)]
        return f"the deliveries to get there: {log}"

    wait_until(lambda: condition(log_of(database, webhook_id)), timeout_s=30, what=told)


def pass_time(database: Database) -> None:
    """Let so much time pass that every delivery is due that is not over, and no claim counts any more."""
    with database.session_scope() as session:
        past = now(session) - timedelta(seconds=1)
        session.execute(update(Delivery).where(Delivery.due_at.is_not(None)).values(due_at=past))


def is_over(log: Sequence[Delivery]) -> bool:
    return all(each.due_at is None for each in log)


def was_tried(log: Sequence[Delivery]) -> bool:
    return all(each.log for each in log)


def test_what_happens_to_a_job_arrives_signed_in_the_words_that_are_stored(
    database: Database, receiver: Receiver
) -> None:
    webhook_id, key = register(database, receiver.url)
    with database.session_scope() as session:
        spec = JobSpec.model_validate({"name": "é 🎈", "device": "cpu", "train": TRAIN})
        job_id = jobs.submit(session, spec).job.id
    with database.session_scope() as session:
        jobs.set_intent(session, job_id, Intent.CANCEL)

    with sending(database):
        wait_for(database, webhook_id, is_over)

    told = {body["type"]: body for body in (verified(key, request) for request in receiver.requests)}
    assert sorted(told) == ["job.cancelled", "job.queued"]
    assert told["job.cancelled"]["data"]["job"]["name"] == "é 🎈"
    stored = {each.message_id: each.payload for each in log_of(database, webhook_id)}
    assert {each.headers["webhook-id"]: json.loads(each.body) for each in receiver.requests} == stored
    assert {each.headers["content-type"] for each in receiver.requests} == {"application/json"}
    assert [[(a.status, a.error) for a in each.log] for each in log_of(database, webhook_id)] == [[(204, None)]] * 2


def test_a_message_is_not_taken_for_true_with_another_key_or_another_body(
    database: Database, receiver: Receiver
) -> None:
    webhook_id, key = register(database, receiver.url)
    _, other_key = register(database, receiver.url)
    write(database, webhook_id)
    with sending(database):
        wait_for(database, webhook_id, is_over)
    (request,) = receiver.requests

    verified(key, request)
    with pytest.raises(WebhookVerificationError):
        verified(other_key, request)
    with pytest.raises(WebhookVerificationError):
        verified(key, Received(request.path, request.headers, request.body.replace(b"webhook.test", b"job.failed")))


def test_a_receiver_that_fails_is_told_again_with_the_same_id_and_a_signature_of_that_time(
    database: Database, receiver: Receiver
) -> None:
    webhook_id, key = register(database, receiver.url)
    write(database, webhook_id)
    receiver.answer = lambda _: Answer(500 if len(receiver.requests) == 1 else 200)

    with sending(database):
        wait_for(database, webhook_id, was_tried)
        (waiting,) = log_of(database, webhook_id)
        pass_time(database)
        wait_for(database, webhook_id, is_over)

    assert (waiting.delivered_at, waiting.claimed_at, waiting.log[0].error) == (None, None, "answered 500")
    first, second = receiver.requests
    assert (first.body, first.headers["webhook-id"]) == (second.body, second.headers["webhook-id"])
    assert verified(key, second) == verified(key, first)


def test_a_receiver_that_says_that_it_is_gone_is_told_nothing_more(database: Database, receiver: Receiver) -> None:
    webhook_id, _ = register(database, receiver.url)
    write(database, webhook_id, count=20)
    receiver.answer = lambda _: Answer(410)

    with sending(database):
        wait_for(database, webhook_id, is_over)

    with database.session_scope(read_only=True) as session:
        assert session.get_one(Webhook, webhook_id).enabled is False
    assert len(receiver.requests) < 20
    tried = [each.log[0].error for each in log_of(database, webhook_id) if each.log]
    assert set(tried) == {"answered 410; the webhook was disabled"}


def test_an_address_that_is_not_allowed_is_told_in_the_log_of_deliveries(
    database: Database, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RANKZERO_WEBHOOK_ALLOW")
    get_settings.cache_clear()
    webhook_id, _ = register(database, receiver.url)
    write(database, webhook_id)

    with sending(database):
        wait_for(database, webhook_id, was_tried)

    (delivery,) = log_of(database, webhook_id)
    assert (delivery.log[0].status, delivery.log[0].error) == (
        None,
        "127.0.0.1 is not public; an operator may allow it in RANKZERO_WEBHOOK_ALLOW",
    )
    assert delivery.due_at is not None  # the operator may do so
    assert receiver.requests == []


def test_a_redirect_is_a_failure_that_leads_nowhere(database: Database, receiver: Receiver) -> None:
    with Receiver() as other:
        receiver.answer = lambda _: Answer(307, location=other.url)
        webhook_id, _ = register(database, receiver.url)
        write(database, webhook_id)
        with sending(database):
            wait_for(database, webhook_id, was_tried)
        (delivery,) = log_of(database, webhook_id)
        assert delivery.delivered_at is None
        assert "redirects are not followed" in (delivery.log[0].error or "")
        assert other.requests == []


def test_a_receiver_that_does_not_answer_holds_up_no_other_and_is_asked_a_few_times_at_once(
    database: Database, receiver: Receiver
) -> None:
    answered = threading.Event()
    receiver.answer = held_until(answered)
    slow, _ = register(database, receiver.url)
    write(database, slow, count=10)
    with Receiver() as quick, sending(database):
        wait_until(
            lambda: len(receiver.requests) == deliveries.AT_ONCE, timeout_s=30, what="the slow receiver to be busy"
        )
        other, _ = register(database, quick.url)
        write(database, other, count=10)
        wait_for(database, other, is_over)
        busy = len(receiver.requests)
        answered.set()
        wait_for(database, slow, is_over)

    assert busy == deliveries.AT_ONCE
    assert len({request.headers["webhook-id"] for request in receiver.requests}) == len(receiver.requests) == 10


def test_with_every_lane_taken_by_slow_receivers_another_has_the_first_that_is_free(
    database: Database, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "MOST_LANES", deliveries.AT_ONCE)
    may_answer = threading.Semaphore(0)

    def hold(_: Received) -> Answer:
        may_answer.acquire(timeout=60)
        return Answer()

    receiver.answer = hold
    slow, _ = register(database, receiver.url)
    write(database, slow, count=10)
    with Receiver() as quick, sending(database):
        wait_until(lambda: len(receiver.requests) == deliveries.AT_ONCE, timeout_s=30, what="the lanes to be taken")
        other, _ = register(database, quick.url)
        write(database, other)
        may_answer.release()
        wait_for(database, other, is_over)
        asked = len(receiver.requests)
        may_answer.release(9)
        wait_for(database, slow, is_over)

    assert asked <= deliveries.AT_ONCE + 1


def test_two_workers_send_each_message_once(database: Database, receiver: Receiver) -> None:
    webhook_id, _ = register(database, receiver.url)
    write(database, webhook_id, count=30)
    with sending(database), sending(database):
        wait_for(database, webhook_id, is_over)
    assert len({request.headers["webhook-id"] for request in receiver.requests}) == len(receiver.requests) == 30


def test_a_worker_that_cannot_sign_leaves_a_message_to_one_that_can(
    database: Database, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, key_file: Path, tmp_path: Path
) -> None:
    webhook_id, key = register(database, receiver.url)
    write(database, webhook_id)
    make_key(tmp_path / "another")
    monkeypatch.setenv("RANKZERO_KEY_FILE", str(tmp_path / "another"))
    get_settings.cache_clear()
    with sending(database):
        wait_for(database, webhook_id, lambda log: (log[0].due_at or log[0].created_at) > log[0].created_at)
    monkeypatch.delenv("RANKZERO_KEY_FILE")
    get_settings.cache_clear()
    pass_time(database)
    with sending(database) as keyless:
        wait_until(lambda: keyless.is_keyless, timeout_s=30, what="a worker with no key to find something due")
    assert [(each.log, each.tries) for each in log_of(database, webhook_id)] == [([], 0)]

    monkeypatch.setenv("RANKZERO_KEY_FILE", str(key_file))
    get_settings.cache_clear()
    with sending(database):
        wait_for(database, webhook_id, is_over)

    verified(key, receiver.requests[0])


def test_a_message_whose_sending_fails_as_nobody_foresaw_is_given_up_as_any_other(
    database: Database, receiver: Receiver
) -> None:
    webhook_id, _ = register(database, receiver.url)
    with database.session_scope() as session:
        webhooks.get(session, webhook_id).sealed_key = seal("whsec_x")  # which signs nothing
    write(database, webhook_id)

    tries = 0

    def was_tried_again(log: Sequence[Delivery]) -> bool:
        return len(log[0].log) > tries

    with sending(database):
        while not is_over(log_of(database, webhook_id)):
            pass_time(database)
            wait_for(database, webhook_id, was_tried_again)
            tries += 1

    (delivery,) = log_of(database, webhook_id)
    assert delivery.given_up_at is not None
    assert len(delivery.log) == len(deliveries.WAITS_S) + 1
    ((status, error),) = {(each.status, each.error) for each in delivery.log}
    assert status is None
    assert str(error).startswith("it cannot be sent: Error: ")
    assert receiver.requests == []


def test_a_worker_that_was_killed_after_it_sent_has_another_send_the_same_again(
    database: Database, database_url: str, receiver: Receiver, key_file: Path, tmp_path: Path
) -> None:
    killed = threading.Event()
    receiver.answer = held_until(killed)
    webhook_id, key = register(database, receiver.url)
    with Service(database_url, NO_BROKER, tmp_path, key_file=key_file, webhook_allow=LOOPBACK) as service:
        worker = service.start_worker()
        write(database, webhook_id)
        wait_until(lambda: receiver.requests, timeout_s=30, what="the worker to send")
        worker.kill()
        worker.wait()
        killed.set()
        assert [each.log for each in log_of(database, webhook_id)] == [[]]
        pass_time(database)
        service.start_worker("beta")
        wait_for(database, webhook_id, is_over)

    first, second = receiver.requests
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert verified(key, first) == verified(key, second)


def test_a_delivery_that_is_sent_once_more_has_the_same_id(database: Database, receiver: Receiver) -> None:
    webhook_id, _ = register(database, receiver.url)
    (delivery_id,) = write(database, webhook_id)
    with sending(database):
        wait_for(database, webhook_id, is_over)
        with database.session_scope() as session:
            deliveries.redeliver(session, webhook_id, delivery_id)
        wait_for(database, webhook_id, is_over)
    first, second = receiver.requests
    assert (first.body, first.headers["webhook-id"]) == (second.body, second.headers["webhook-id"])


def test_what_is_old_and_over_is_forgotten(database: Database, receiver: Receiver) -> None:
    webhook_id, _ = register(database, receiver.url)
    write(database, webhook_id)
    with database.session_scope() as session:
        old = now(session) - timedelta(days=15)
        session.execute(update(Delivery).values(created_at=old, due_at=None, given_up_at=old))
    with sending(database):
        wait_until(
            lambda: not list(log_of(database, webhook_id)), timeout_s=30, what="the old delivery to be forgotten"
        )


def verified(key: str, request: Received) -> Any:
    """The body of a request, once its signature is found to be that of the key."""
    return Signature(key).verify(request.body, request.headers)
