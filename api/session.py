"""One transaction for each request, over before the first byte of the answer leaves."""

from collections.abc import Iterator
from typing import Annotated

from fastapi import Depends
from sqlalchemy.orm import Session

from jobs.database import get_database


def get_session() -> Iterator[Session]:
    """Open the request's transaction for reading."""
    with get_database().session_scope(read_only=True) as session:
        yield session


def get_writing_session() -> Iterator[Session]:
    """Open the request's transaction for writing; it commits before the answer is sent, or the answer is an error."""
    with get_database().session_scope() as session:
        yield session


# The scope "function" ends the transaction with the endpoint: a slow reader of an answer holds no connection.
Reading = Annotated[Session, Depends(get_session, scope="function")]
Writing = Annotated[Session, Depends(get_writing_session, scope="function")]
