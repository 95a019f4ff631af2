"""One transaction for each request, over before the first byte of the answer leaves.

Endpoints open it themselves, in the thread that runs them. As a dependency it would be opened in one thread of a
limited number and closed in another: once all of them wait for a connection, none is left to give one back.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from sqlalchemy.orm import Session

from jobs.database import get_database
from jobs.store import audit


def reading() -> AbstractContextManager[Session]:
    """Open the request's transaction for reading."""
    return get_database().session_scope(read_only=True)


@contextmanager
def writing() -> Iterator[Session]:
    """Open the request's transaction for writing; it commits before the answer is made, or the answer is an error.

    What it does has to be in the audit (`jobs.store.audit`) by its end.
    """
    with get_database().session_scope() as session:
        yield session
        assert audit.is_written(session), "a route that writes leaves an audit event: audit.record(session, by, …)"
