"""Tokens: making them, seeing which there are, and having one count no more."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from api.access import Viewer
from api.errors import CONFLICT
from api.integers import IN_DIGITS
from api.pages import Page, read_page
from api.queries import MAX_ID
from api.session import reading, writing
from api.tokens import NewToken, ShownToken, Token, TokenQuery
from jobs.access import Role
from jobs.store import audit, grants, tokens

router = APIRouter(prefix="/tokens", tags=["access"])

TokenId = Annotated[int, Path(ge=1, le=MAX_ID, description="Id of the token."), IN_DIGITS]


@router.post("", status_code=201, summary="Make a token", responses=CONFLICT)
def create_token(wanted: NewToken, response: Response, by: Viewer) -> ShownToken:
    """Make a token, for oneself or with the role admin for others, and return it; its text is shown this once.

    It allows no more than the token that asks for it.
    """
    with writing() as session:
        token, text = grants.make(
            session, by, name=wanted.name, user=wanted.user, role=wanted.role, expires_at=wanted.expires_at
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
    """Have a token count no more, from the next request on; one's own, or with the role admin any."""
    with writing() as session:
        tokens.revoke(session, tokens.get(session, token_id, of=None if by.may(Role.ADMIN) else by.user))
        audit.record(session, by, "revoke_token", f"tokens/{token_id}")
