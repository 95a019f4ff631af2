"""Tokens: making them, seeing which there are, and having one count no more."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from api.access import Viewer
from api.errors import CONFLICT
from api.integers import IN_DIGITS
from api.keys import IdempotencyKey
from api.pages import Page, read_page
from api.queries import MAX_ID
from api.session import reading, writing
from api.tokens import NewToken, ShownToken, Token, TokenQuery
from jobs.store import audit, grants, idempotency, tokens

router = APIRouter(prefix="/tokens", tags=["access"])

TokenId = Annotated[int, Path(ge=1, le=MAX_ID, description="Id of the token."), IN_DIGITS]


@router.post("", status_code=201, summary="Make a token", responses=CONFLICT)
def create_token(wanted: NewToken, response: Response, by: Viewer, key: IdempotencyKey = None) -> ShownToken:
    """Make a token, for oneself or with the role admin for others, and return it; its text is shown this once.

    It allows no more than the token that asks for it. Sent again under its `Idempotency-Key` this makes no second one,
    and cannot show the first one's text: a 409 names it, to be revoked where nobody has that.
    """
    fields = {name: getattr(wanted, name) for name in NewToken.model_fields}
    with writing() as session:
        token, text = idempotency.once(
            session, key, grants.MADE, wanted, lambda: grants.make(session, by, **fields), by=by
        )
        shown = Token.model_validate(token, from_attributes=True)
        asked = shown.model_dump(mode="json", include={"user", "name", "role", "expires_at"})
        audit.record(session, by, "create_token", f"tokens/{token.id}", **asked)
    response.headers["Cache-Control"] = "no-store"
    return ShownToken.model_construct(**dict(shown), token=text)


@router.get("", summary="List tokens")
def list_tokens(query: Annotated[TokenQuery, Query()], by: Viewer) -> Page[Token]:
    """Return one page of one's own tokens, or with the role admin of all, the newest first."""
    with reading() as session:
        return read_page(session, tokens.select_tokens(of=grants.whose(by, query.user)), query, Token)


@router.delete("/{token_id}", status_code=204, summary="Revoke a token", responses=CONFLICT)
def revoke_token(token_id: TokenId, by: Viewer) -> None:
    """Have a token count no more, from the next request on; one's own, or with the role admin any.

    A token revokes none of a greater role than its own.
    """
    with writing() as session:
        grants.revoke(session, by, token_id)
        audit.record(session, by, "revoke_token", f"tokens/{token_id}")
