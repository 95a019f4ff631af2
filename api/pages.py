"""Cursor pages: the parameters, the answer, and reading one page of a query."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import datetime
from typing import Annotated, Any, Generic, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field
from sqlakeyset import InvalidPage, Marker, select_page
from sqlalchemy import Select, exc
from sqlalchemy.orm import Session

from api.integers import IN_DIGITS
from jobs.database import AWAY
from jobs.errors import InvalidFilterError

NO_CURSOR = "not a cursor of this list; start without one"

Item = TypeVar("Item", bound=BaseModel)


class PageQuery(BaseModel):
    """Which page: the parameters of every list."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    cursor: str | None = Field(default=None, max_length=4096)
    """`next_page` or `previous_page` of an earlier answer to the same query."""
    size: Annotated[int, IN_DIGITS] = Field(default=50, ge=1, le=1000)
    """Most items on the page."""


class Page(BaseModel, Generic[Item]):
    """A part of a list."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    items: list[Item]
    next_page: str | None
    """Cursor of the page after this one; null at the end."""
    previous_page: str | None
    """Cursor of the page before this one; null at the beginning."""


class _Moment(BaseModel):
    """A time in a cursor, where text is a name."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    at: AwareDatetime


class _Cursor(BaseModel):
    """A place in a list, as its clients hold it: sqlakeyset's own form loses some of what names may have in them."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    order: str
    backwards: bool
    place: list[Annotated[int, Field(ge=-(2**63), lt=2**63)] | str | _Moment]
    """Empty for the begin of the list, or its end: what a page leads back to whose items have all been removed."""


def read_page(
    session: Session, query: Select[Any], params: PageQuery, model: type[Item], *, order: str = ""
) -> Page[Item]:
    """Read one page of a query, beginning at its cursor's place: what was added or removed before it shifts nothing.

    `order` names the query's order where it has several. Raises InvalidFilterError for a cursor that is none, or one of
    another order, which would leave out items without a word.
    """
    marker = _decoded(params.cursor, order)
    try:
        page = select_page(session, query, per_page=params.size, page=marker)
    except AWAY:
        raise
    except (InvalidPage, exc.StatementError) as error:
        # A cursor that somebody made up names values that the columns cannot be compared with.
        if marker is None:
            raise
        raise InvalidFilterError("cursor", NO_CURSOR) from error
    place = page.paging
    return Page(
        items=[model.model_validate(row[0], from_attributes=True) for row in page],
        next_page=_encoded(place.next, order) if place.has_next else None,
        previous_page=_encoded(place.previous, order) if place.has_previous else None,
    )


def _encoded(marker: Marker, order: str) -> str:
    place = [_Moment(at=value) if isinstance(value, datetime) else value for value in marker.place or ()]
    cursor = _Cursor(order=order, backwards=marker.backwards, place=place)
    return urlsafe_b64encode(cursor.model_dump_json().encode()).decode().rstrip("=")


def _decoded(text: str | None, order: str) -> Marker | None:
    if text is None:
        return None
    try:
        cursor = _Cursor.model_validate_json(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except ValueError as error:
        raise InvalidFilterError("cursor", NO_CURSOR) from error
    if cursor.order != order:
        raise InvalidFilterError("cursor", f"not a cursor of this list in the order {order}; start without one")
    place = tuple(each.at if isinstance(each, _Moment) else each for each in cursor.place)
    return Marker(place or None, cursor.backwards)
