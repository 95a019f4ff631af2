"""The outbox of webhooks: what each is to be told, written in the transaction of what it tells of."""

import secrets
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from jobs.database import now
from jobs.states import State
from jobs.tables import Checkpoint, Delivery, Job, Placement, Webhook
from jobs.webhooks import TEST, CheckpointTold, Data, FailureTold, JobTold, Message, WebhookTopic

LONGEST_MESSAGE = 2000
"""Characters of a failure's message that are sent: whoever wants more of it asks for the job."""


def tell_of_state(session: Session, job: Job, *, from_state: State | None, at: datetime) -> None:
    """Write the deliveries that tell of the state that a job has just come to."""
    topic = WebhookTopic(f"job.{job.state}")
    for webhook in _listeners(session, topic, job.labels):
        _add(session, webhook, topic, Data(job=_told(job, from_state)), at=at)


def tell_of_best(session: Session, placement: Placement, path: str) -> None:
    """Write the deliveries that tell of the checkpoint at `path`, which an attempt has just saved as its job's best."""
    if not (listeners := _listeners(session, WebhookTopic.BEST)):
        return  # most jobs save a best checkpoint in most epochs: nothing more is read where nobody wants to know
    job = session.get_one(Job, placement.job_id)
    mine = (Checkpoint.job_id == job.id, Checkpoint.attempt == placement.attempt, Checkpoint.path == path)
    checkpoint = session.scalars(select(Checkpoint).where(*mine), execution_options={"populate_existing": True}).one()
    at = now(session)
    told = CheckpointTold.model_validate(checkpoint, from_attributes=True)
    for webhook in listeners:
        if _is_wanted(webhook, job.labels):
            _add(session, webhook, WebhookTopic.BEST, Data(job=_told(job, None), checkpoint=told), at=at)


def add_test(session: Session, webhook: Webhook, *, at: datetime) -> Delivery:
    """Write a delivery that tells of nothing, and return it."""
    delivery = _add(session, webhook, TEST, Data(), at=at)
    session.flush()
    return delivery


def _listeners(session: Session, topic: WebhookTopic, labels: dict[str, str] | None = None) -> list[Webhook]:
    """Return the webhooks that want to be told; with no `labels`, those of jobs with any."""
    # All of them, which are few: what each wants is JSON, and no database finds that any sooner.
    live = select(Webhook).where(Webhook.enabled, Webhook.deleted_at.is_(None)).order_by(Webhook.id)
    wanted = [each for each in session.scalars(live) if not each.topics or topic in each.topics]
    return wanted if labels is None else [each for each in wanted if _is_wanted(each, labels)]


def _is_wanted(webhook: Webhook, labels: dict[str, str]) -> bool:
    return webhook.labels.items() <= labels.items()


def _told(job: Job, from_state: State | None) -> JobTold:
    return JobTold(
        id=job.id,
        name=job.name,
        user=job.user,
        labels=job.labels,
        state=job.state,
        from_state=from_state,
        attempt=job.attempt,
        failure=None if job.failure is None else _failure_told(job.failure),
    )


def _failure_told(report: dict[str, Any]) -> FailureTold:
    rank = report.get("rank")
    return FailureTold(
        cause=str(report.get("cause")),
        message=str(report.get("message", ""))[:LONGEST_MESSAGE],
        rank=rank if isinstance(rank, int) else None,
    )


def _add(session: Session, webhook: Webhook, topic: str, data: Data, *, at: datetime) -> Delivery:
    delivery = Delivery(
        webhook_id=webhook.id,
        message_id=f"msg_{secrets.token_urlsafe(24)}",
        topic=topic,
        job_id=None if data.job is None else data.job.id,
        payload=Message(type=topic, timestamp=at, data=data).payload(),
        created_at=at,
        due_at=at,
        tries=0,
    )
    session.add(delivery)
    return delivery
