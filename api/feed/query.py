"""Which events a stream is to tell of, and from where on: the parameters of `GET /events`."""

from typing import Annotated

from fastapi import Header
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from api.feed.follower import Wanted
from api.integers import IN_DIGITS
from api.queries import MAX_ID
from jobs.feed import Position, Topic


def _split(values: object) -> object:
    """`7,8` beside `7` and `8`: a browser's EventSource is given one URL, which people write by hand."""
    if not isinstance(values, list):
        return values
    return [part for value in values for part in (value.split(",") if isinstance(value, str) else [value])]


def _is_position(text: str) -> str:
    try:
        Position.parse(text)
    except ValueError as error:
        raise PydanticCustomError("position", "{reason}", {"reason": str(error)}) from error
    return text


PositionText = Annotated[
    str,
    AfterValidator(_is_position),
    Field(max_length=39, examples=["1841-977"], json_schema_extra={"pattern": "^[0-9]{1,19}-[0-9]{1,19}$"}),
]
LastEventId = Annotated[
    PositionText | None,
    Header(description="Id of the last event that was received; `EventSource` sends it by itself. Before `after`."),
]


class FollowQuery(BaseModel):
    """What a stream is to tell of."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    jobs: Annotated[
        list[Annotated[int, Field(ge=1, le=MAX_ID), IN_DIGITS]], Field(max_length=100), BeforeValidator(_split)
    ] = []
    """Only what is about these jobs, or about none: ids with commas between. Without it, of all jobs."""
    topics: Annotated[list[Topic], Field(max_length=16), BeforeValidator(_split)] = []
    """Only these topics, with commas between. Without it, all."""
    after: PositionText | None = None
    """Only what came after this event, by its id. Without it, what happens from now on."""

    @property
    def wanted(self) -> Wanted:
        """What of the feed that is."""
        return Wanted(frozenset(self.topics), frozenset(self.jobs))
