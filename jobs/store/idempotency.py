"""Idempotency: a request to make something that is sent again under its key makes no second one.

The header is that of draft-ietf-httpapi-idempotency-key-header. Whoever got no answer sends again within minutes, so a
key counts for a week, and its row is not kept for ever.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from pydantic import BaseModel
from sqlalchemy import delete
from sqlalchemy.orm import Session

from jobs.access import LOCAL, Principal
from jobs.database import lock_key, now
from jobs.errors import InvalidSpecError, KeyReusedError
from jobs.tables import SubmissionKey

KEPT = timedelta(days=7)
"""For how long a key counts at least."""

Made = TypeVar("Made")


@dataclass(frozen=True)
class Kind(Generic[Made]):
    """One kind of what is made under keys."""

    name: str
    """What its paths begin with: `jobs`."""
    id_of: Callable[[Made], int | str]
    again: Callable[[Session, str], Made]
    """Returns by its id what was made before, as it is now; or raises StateConflictError, where that cannot be."""


def once(
    session: Session,
    key: str | None,
    kind: Kind[Made],
    asked: BaseModel,
    make: Callable[[], Made],
    *,
    by: Principal = LOCAL,
    of: int | None = None,
) -> Made:
    """Make something, or return what was made under `key` before, as it is now; without a key, make it.

    `asked` is what was asked for, by whom, and `of` the job that it is about. Raises KeyReusedError where the key was
    given to something else, or by another user, and StateConflictError where what was made cannot be returned.
    """
    if key is None:
        return make()
    lock_key(session, key)  # of many at once, the first makes it and the others find what it stored
    digest = _digest(asked, by, of)
    known = session.get(SubmissionKey, key, populate_existing=True)
    if known is None:
        made = make()
        path = f"{kind.name}/{kind.id_of(made)}"
        session.add(SubmissionKey(key=key, digest=digest, made=path, created_at=now(session)))
        session.flush()
        return made
    if known.digest != digest:
        # Who asks for another kind of thing may have no right to know what this was.
        which = f", which made {known.made}" if known.made.startswith(f"{kind.name}/") else ""
        raise KeyReusedError(f"{key!r} was given to another request{which}; take a new key")
    return kind.again(session, known.made.removeprefix(f"{kind.name}/"))


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
