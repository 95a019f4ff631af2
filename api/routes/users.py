"""Users: who may use the service, and who is asking."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from api.access import Admin, Viewer
from api.errors import CONFLICT
from api.pages import Page, PageQuery, read_page
from api.session import reading, writing
from api.users import Me, NewUser, User, UserChanges
from jobs.access import UserName
from jobs.store import audit, users

router = APIRouter(tags=["access"])

Name = Annotated[UserName, Path(description="Name of the user.")]


@router.get("/me", summary="Show who is asking")
def get_me(request: Request, by: Viewer) -> Me:
    """Return on whose behalf this request is made, and what it may do."""
    return Me(user=by.user, role=by.role, token_id=by.token_id, access=request.app.state.access)


@router.post("/users", status_code=201, summary="Add a user", responses=CONFLICT)
def create_user(user: NewUser, response: Response, by: Admin) -> User:
    """Add a user, who can do nothing yet: `POST /tokens` makes them a token."""
    with writing() as session:
        stored = users.add(session, user.name, user.role)
        audit.record(session, by, "create_user", f"users/{user.name}", role=user.role)
    response.headers["Location"] = f"/users/{user.name}"
    return User.model_validate(stored, from_attributes=True)


@router.get("/users", summary="List users")
def list_users(query: Annotated[PageQuery, Query()], _: Admin) -> Page[User]:
    """Return one page of the users, by name."""
    with reading() as session:
        return read_page(session, users.select_users(), query, User)


@router.get("/users/{name}", summary="Show a user")
def get_user(name: Name, _: Admin) -> User:
    """Return one user."""
    with reading() as session:
        return User.model_validate(users.get(session, name), from_attributes=True)


@router.patch("/users/{name}", summary="Change a user's role, or disable them", responses=CONFLICT)
def change_user(name: Name, changes: UserChanges, by: Admin) -> User:
    """Change a user and return them; it counts from their next request on. The last admin stays one."""
    wanted = changes.model_dump(exclude_unset=True)
    with writing() as session:
        user = users.change(session, name, **wanted)
        audit.record(session, by, "change_user", f"users/{name}", **wanted)
    return User.model_validate(user, from_attributes=True)
