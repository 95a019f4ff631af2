"""Users: who may use the service, and who is asking."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from api.access import Admin, Viewer
from api.errors import CONFLICT, EDITED_SINCE, NOT_MODIFIED
from api.etags import IfMatch, Tags
from api.keys import IdempotencyKey
from api.pages import Page, PageQuery, read_page
from api.session import reading, writing
from api.users import Me, NewUser, User, UserChanges
from jobs import tables
from jobs.access import UserName
from jobs.store import audit, idempotency, users

router = APIRouter(tags=["access"])

Name = Annotated[UserName, Path(description="Name of the user.")]


@router.get("/me", summary="Show who is asking")
def get_me(request: Request, by: Viewer) -> Me:
    """Return on whose behalf this request is made, and what it may do."""
    return Me(user=by.user, role=by.role, token_id=by.token_id, access=request.app.state.access)


@router.post("/users", status_code=201, summary="Add a user", responses=CONFLICT)
def create_user(user: NewUser, response: Response, by: Admin, key: IdempotencyKey = None) -> User:
    """Add a user, who can do nothing yet: `POST /tokens` makes them a token."""
    with writing() as session:
        stored = idempotency.once(
            session, key, users.ADDED, user, lambda: users.add(session, user.name, user.role), by=by
        )
        audit.record(session, by, "create_user", f"users/{user.name}", role=user.role)
    response.headers["Location"] = f"/users/{user.name}"
    return _view(stored)


@router.get("/users", summary="List users")
def list_users(query: Annotated[PageQuery, Query()], _: Admin) -> Page[User]:
    """Return one page of the users, by name."""
    with reading() as session:
        return read_page(session, users.select_users(), query, User)


@router.get("/users/{name}", summary="Show a user", responses=NOT_MODIFIED)
def get_user(name: Name, _: Admin, tags: Tags) -> User:
    """Return one user."""
    with reading() as session:
        user = users.get(session, name)
    return tags.shown(_view(user), **_edited(user))


@router.patch("/users/{name}", summary="Change a user's role, or disable them", responses=CONFLICT | EDITED_SINCE)
def change_user(name: Name, changes: UserChanges, by: Admin, expected: IfMatch) -> User:
    """Change a user and return them; it counts from their next request on. The last admin stays one."""
    wanted = changes.model_dump(exclude_unset=True)
    with writing() as session:
        expected.check(f"user {name}", **_edited(users.get(session, name, held=True)))
        user = users.change(session, name, **wanted)
        audit.record(session, by, "change_user", f"users/{name}", **wanted)
    return expected.changed(_view(user), **_edited(user))


def _view(user: tables.User) -> User:
    return User.model_validate(user, from_attributes=True)


def _edited(user: tables.User) -> dict[str, object]:
    """What admins edit of a user."""
    return {"role": user.role, "disabled": user.disabled_at is not None}
