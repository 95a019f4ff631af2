"""The outbox: each webhook is told what it wants to know, by the transaction that makes it so."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import select

from jobs.changes import JobChanges
from jobs.database import Database, now
from jobs.errors import StaleAttemptError
from jobs.states import Intent, Outcome
from jobs.store import jobs, reports, verbs
from jobs.tables import Delivery, Webhook
from jobs.webhooks import WebhookTopic
from tests.integration.running_job import saved
from tests.integration.store.conftest import Service
from tests.integration.store.statements import executed


def register(database: Database, **fields: Any) -> int:
    """Store a webhook, and return its id."""
    with database.session_scope() as session:
        at = now(session)
        given = {"url": "https://hooks.example/", "topics": [], "labels": {}, "sealed_key": "sealed", "enabled": True}
        webhook = Webhook(**given | {"created_at": at, "updated_at": at} | fields)
        session.add(webhook)
        session.flush()
        return webhook.id


def told(database: Database, webhook_id: int) -> Sequence[Delivery]:
    """What a webhook was told, oldest first."""
    with database.session_scope(read_only=True) as session:
        query = select(Delivery).where(Delivery.webhook_id == webhook_id).order_by(Delivery.id)
        return session.scalars(query).all()


def topics(database: Database, webhook_id: int) -> list[str]:
    return [delivery.topic for delivery in told(database, webhook_id)]


def test_every_state_that_a_job_comes_to_is_told_in_order_and_due_at_once(service: Service) -> None:
    webhook_id = register(service.database)
    placement = service.run(name="night run", labels={"team": "vision"}, user="alice")
    service.end(placement, Outcome.SUCCEEDED)

    deliveries = told(service.database, webhook_id)

    assert [each.topic for each in deliveries] == ["job.queued", "job.starting", "job.running", "job.succeeded"]
    moves = [(each.payload["data"]["job"]["from_state"], each.payload["data"]["job"]["state"]) for each in deliveries]
    assert moves == [(None, "queued"), ("queued", "starting"), ("starting", "running"), ("running", "succeeded")]
    last = deliveries[-1]
    assert last.job_id == placement.job_id
    assert last.payload["type"] == "job.succeeded"
    assert last.payload["data"] == {
        "job": {
            "id": placement.job_id,
            "name": "night run",
            "user": "alice",
            "labels": {"team": "vision"},
            "state": "succeeded",
            "from_state": "running",
            "attempt": 1,
            "failure": None,
        }
    }
    assert last.due_at == last.created_at == service.job(placement.job_id).finished_at
    assert len({each.message_id for each in deliveries}) == 4


def test_a_webhook_is_told_of_its_topics_and_labels_only(service: Service) -> None:
    ends = register(service.database, topics=[WebhookTopic.SUCCEEDED, WebhookTopic.CANCELLED])
    vision = register(service.database, labels={"team": "vision", "stage": "night"})
    disabled = register(service.database, enabled=False)
    with service.database.session_scope(read_only=True) as session:
        at = now(session)
    removed = register(service.database, deleted_at=at)

    job_id = service.submit(labels={"team": "vision"})
    with service.database.session_scope() as session:
        verbs.change(session, job_id, JobChanges(labels={"stage": "night"}))
    with service.database.session_scope() as session:
        jobs.set_intent(session, job_id, Intent.CANCEL)

    assert topics(service.database, ends) == ["job.cancelled"]
    assert topics(service.database, vision) == ["job.cancelled"]  # it had not both labels when it was submitted
    assert topics(service.database, disabled) == topics(service.database, removed) == []


def test_what_is_rolled_back_is_not_told(service: Service) -> None:
    webhook_id = register(service.database)
    job_id = service.submit()

    with service.database.session_scope() as session:
        assert jobs.set_intent(session, job_id, Intent.CANCEL).state == "cancelled"
        session.rollback()

    assert service.state(job_id) == "queued"
    assert topics(service.database, webhook_id) == ["job.queued"]


def test_a_failure_is_told_without_its_traceback_and_its_output_and_with_so_much_of_its_message(
    service: Service,
) -> None:
    webhook_id = register(service.database, topics=[WebhookTopic.FAILED])
    report = {"cause": "data", "message": "x" * 5000, "rank": 1, "traceback": "secret", "log_tail": "secret"}

    service.end(service.run(), Outcome.FAILED, failure=report)

    (delivery,) = told(service.database, webhook_id)
    assert delivery.payload["data"]["job"]["failure"] == {"cause": "data", "message": "x" * 2000, "rank": 1}
    assert "secret" not in str(delivery.payload)


def test_a_job_that_waits_again_after_a_loss_is_told_as_queued_with_what_it_was_lost_by(service: Service) -> None:
    webhook_id = register(service.database, topics=[WebhookTopic.QUEUED])
    placement = service.run()

    service.run_out(placement)
    service.expire()

    first, second = told(service.database, webhook_id)
    assert first.payload["data"]["job"]["failure"] is None
    again = second.payload["data"]["job"]
    assert (again["from_state"], again["failure"]["cause"]) == ("running", "lost")


def test_a_best_checkpoint_is_told_once_and_another_not_at_all(service: Service) -> None:
    webhook_id = register(service.database, topics=[WebhookTopic.BEST])
    deaf = register(service.database, topics=[WebhookTopic.BEST], labels={"team": "other"})
    placement = service.run()
    best = saved("/runs/best.pt", step=7)
    for file in (best, best, replace(saved("/runs/last.pt", step=9), best=False)):
        with service.database.session_scope() as session:
            reports.add_checkpoint(session, placement, file)

    (delivery,) = told(service.database, webhook_id)

    assert told(service.database, deaf) == []
    checkpoint = delivery.payload["data"]["checkpoint"]
    assert (checkpoint["path"], checkpoint["step"], checkpoint["attempt"]) == ("/runs/best.pt", 7, 1)
    assert delivery.payload["data"]["job"]["id"] == placement.job_id


def test_one_path_that_two_attempts_save_to_is_told_as_the_checkpoint_of_each(service: Service) -> None:
    webhook_id = register(service.database, topics=[WebhookTopic.BEST])
    first = service.run()
    with service.database.session_scope() as session:
        reports.add_checkpoint(session, first, saved("/shared/best.pt", step=1))
    service.run_out(first)
    service.expire()
    (second,) = service.plan()
    service.claim(second)
    with service.database.session_scope() as session:
        reports.add_checkpoint(session, second, saved("/shared/best.pt", step=2))

    checkpoints = [each.payload["data"]["checkpoint"] for each in told(service.database, webhook_id)]
    assert [(each["attempt"], each["step"]) for each in checkpoints] == [(1, 1), (2, 2)]


def test_a_stale_attempt_tells_nothing(service: Service) -> None:
    webhook_id = register(service.database, topics=[WebhookTopic.BEST])
    placement = service.run()
    service.run_out(placement)
    service.expire()

    with pytest.raises(StaleAttemptError), service.database.session_scope() as session:
        reports.add_checkpoint(session, placement, saved("/runs/best.pt"))

    assert told(service.database, webhook_id) == []


def test_with_no_webhook_a_change_of_state_costs_one_query_and_writes_nothing(service: Service) -> None:
    job_id = service.submit()

    with executed(service.database) as statements, service.database.session_scope() as session:
        jobs.set_intent(session, job_id, Intent.PAUSE)

    assert service.state(job_id) == "paused"
    about = [statement for statement in statements if "webhook" in statement]
    assert [statement.split()[0] for statement in about] == ["SELECT"]
