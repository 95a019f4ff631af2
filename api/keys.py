"""The header by which a client names a request that makes something, so that it may send it again."""

from typing import Annotated

from fastapi import Header

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        pattern=r"^[\x20-\x7e]+$",
        description="A text of the client's own for this request: sent again with it, it makes no second one.",
    ),
]
"""What every route has that makes something anew each time that it is asked."""
