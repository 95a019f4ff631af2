"""One transaction for each request, over before the first byte of the answer leaves.

Endpoints open it themselves, in the thread that runs them. As a dependency it would be opened in one thread of a
limited number and closed in another: once all of them wait for a connection, none is left to give one back.
"""

from contextlib import AbstractContextManager

from sqlalchemy.orm import Session

from jobs.database import get_database


def reading() -> AbstractContextManager[Session]:
    """Open the request's transaction for reading."""
    return get_database().session_scope(read_only=True)


def writing() -> AbstractContextManager[Session]:
    """Open the request's transaction for writing; it commits before the answer is made, or the answer is an error."""
    return get_database().session_scope()
