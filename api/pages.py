"""Cursor pages: the parameters, the answer, and reading one page of a query."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field
from sqlakeyset import InvalidPage, Marker, select_page, unserialize_bookmark
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
        next_page=_encoded(place.bookmark_next, order) if place.has_next else None,
        previous_page=_encoded(place.bookmark_previous, order) if place.has_previous else None,
    )


def _encoded(bookmark: str, order: str) -> str:
    return urlsafe_b64encode(f"{order}\n{bookmark}".encode()).decode().rstrip("=")


def _decoded(cursor: str | None, order: str) -> Marker | None:
    if cursor is None:
        return None
    try:
        text = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
        cursor_order, _, bookmark = text.partition("\n")
        marker = unserialize_bookmark(bookmark)
    except ValueError as error:
        raise InvalidFilterError("cursor", NO_CURSOR) from error
    if cursor_order != order:
        raise InvalidFilterError("cursor", f"not a cursor of this list in the order {order}; start without one")
    if not all(_is_comparable(value) for value in marker.place or (None,)):
        raise InvalidFilterError("cursor", NO_CURSOR)
    return marker


def _is_comparable(value: object) -> bool:
    """Whether a column that is never null can be compared with it."""
    return value is not None and not (isinstance(value, int) and abs(value) >= 2**63)
