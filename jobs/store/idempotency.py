"""Idempotency: a submission that is sent again under its key stores no second job.

The header is that of draft-ietf-httpapi-idempotency-key-header. Whoever got no answer sends again within minutes, so a
key counts for a week, and its row is not kept for ever.
"""

import hashlib
import json
from collections.abc import Callable
from datetime import datetime, timedelta

from pydantic import BaseModel
from sqlalchemy import delete
from sqlalchemy.orm import Session

from jobs.access import LOCAL, Principal
from jobs.database import lock_key, now
from jobs.errors import InvalidSpecError, KeyReusedError
from jobs.store.jobs import Submission, get
from jobs.tables import SubmissionKey

KEPT = timedelta(days=7)
"""For how long a key counts at least."""


def once(
    session: Session,
    key: str | None,
    asked: BaseModel,
    submit: Callable[[], Submission],
    *,
    by: Principal = LOCAL,
    of: int | None = None,
) -> Submission:
    """Submit, or return the job that was stored under `key` before, as it is now; without a key, submit.

    `asked` is what was asked for, by whom, and `of` the job that it is about. Raises KeyReusedError where the key was
    given to something else, or by another user.
    """
    if key is None:
        return submit()
    lock_key(session, key)  # of many at once, the first submits and the others find what it stored
    digest = _digest(asked, by, of)
    known = session.get(SubmissionKey, key, populate_existing=True)
    if known is None:
        submission = submit()
        session.add(SubmissionKey(key=key, digest=digest, job_id=submission.job.id, created_at=now(session)))
        session.flush()
        return submission
    if known.digest != digest:
        raise KeyReusedError(f"{key!r} was given to another submission, which is job {known.job_id}; take a new key")
    return Submission(get(session, known.job_id), ())


def forget(session: Session, at: datetime) -> None:
    """Remove the keys that count no more at the database's time `at`."""
    session.execute(delete(SubmissionKey).where(SubmissionKey.created_at < at - KEPT))


def _digest(asked: BaseModel, by: Principal, of: int | None) -> str:
    try:
        # Not pydantic's own JSON, which knows no lone surrogates: a client may send them, as escapes.
        text = json.dumps([type(asked).__name__, by.user, of, asked.model_dump()], sort_keys=True, default=str)
    except RecursionError as error:
        raise InvalidSpecError("body", "nested too deep") from error
    return hashlib.sha256(text.encode()).hexdigest()
