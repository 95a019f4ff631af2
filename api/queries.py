"""The query parameters of the lists; one that is not named here is refused, not ignored."""

from datetime import UTC, datetime
from typing import Annotated, Literal

from fastapi import Path
from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from api.fields import CheckpointFields, EventFields, HostFields, JobFields
from api.integers import AS_A_DATE, IN_DIGITS
from api.pages import PageQuery
from jobs.errors import InvalidFilterError
from jobs.states import State
from jobs.store.search import SORTS

MAX_ID = 2**63 - 1
"""The largest number that a database column holds."""

JobId = Annotated[int, Path(ge=1, le=MAX_ID, description="Id of the job."), IN_DIGITS]
Text = Annotated[str, Field(max_length=255, pattern=r"^[^\x00]*$")]
Number = Annotated[int, Field(ge=0, le=MAX_ID), IN_DIGITS]
Moment = Annotated[
    AwareDatetime, Field(ge=datetime(1970, 1, 1, tzinfo=UTC), lt=datetime(9000, 1, 1, tzinfo=UTC)), AS_A_DATE
]
"""A time that can be written in every zone, as one in the year 1 or 9999 may not."""


def _known_sort(sort: str) -> str:
    if sort not in SORTS:
        raise PydanticCustomError("sort", "must be one of {sorts}", {"sorts": ", ".join(SORTS)})
    return sort


def _key_and_value(label: str) -> str:
    if "=" not in label:
        raise PydanticCustomError("label", "must be key=value")
    return label


class JobQuery(PageQuery):
    """Which jobs, in which order."""

    state: list[State] = Field(default=[], max_length=16)
    """Only jobs in this state; repeat it for any of several."""
    label: list[Annotated[Text, AfterValidator(_key_and_value)]] = Field(default=[], max_length=16)
    """Only jobs with this label, as `key=value`; repeat it for all of several."""
    name: Text | None = None
    """Only jobs whose name contains this, upper or lower case."""
    user: Text | None = None
    """Only jobs for this user."""
    priority: Annotated[int, Field(ge=0, le=100), IN_DIGITS] | None = None
    """Only jobs of this priority."""
    recipe: Text | None = None
    """Only jobs that train by this recipe."""
    model: Text | None = None
    """Only jobs that train this model."""
    host: Text | None = None
    """Only jobs that have run on this host, if only in part."""
    created_after: Moment | None = None
    """Only jobs submitted at this time or later."""
    created_before: Moment | None = None
    """Only jobs submitted before this."""
    finished_after: Moment | None = None
    """Only jobs that are over, since this time or later."""
    parent: Annotated[int, Field(ge=1, le=MAX_ID), IN_DIGITS] | None = None
    """Only jobs that were cloned from this one, or start from a checkpoint of it."""
    sort: Annotated[str, AfterValidator(_known_sort), Field(json_schema_extra={"enum": list(SORTS)})] = "-id"
    """Order; a minus means descending."""
    fields: JobFields = None

    @property
    def labels(self) -> dict[str, str]:
        """The wanted labels. Raises InvalidFilterError where one key is to have two values."""
        wanted: dict[str, str] = {}
        for label in self.label:
            key, _, value = label.partition("=")
            if wanted.setdefault(key, value) != value:
                raise InvalidFilterError("label", f"no job has two values of {key!r}")
        return wanted


class CheckpointQuery(PageQuery):
    """Which checkpoints."""

    removed: bool = False
    """Also those whose file is gone."""
    best: bool = False
    """Only the best, by the job's own measure."""
    last: bool = False
    """Only the one that is furthest."""
    sort: Literal["id", "-id"] = "id"
    """Order; `-id` has the newest first."""
    fields: CheckpointFields = None


class HostQuery(BaseModel):
    """In which order hosts are listed."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    sort: Literal["name", "-name"] = "name"
    """Order; a minus means descending."""
    fields: HostFields = None


class TelemetryQuery(PageQuery):
    """Which figures of GPUs."""

    begin: Moment | None = Field(default=None, alias="from")
    """Only of stretches of time that begin at this time or later."""
    end: Moment | None = Field(default=None, alias="to")
    """Only of those that begin before this."""


class AfterQuery(BaseModel):
    """Which part of what is followed by asking again."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    after: Number = 0
    """Only what came after this; the answer names it as `after`."""
    limit: Annotated[int, IN_DIGITS] = Field(default=200, ge=1, le=1000)
    """Most items in the answer."""


class EventQuery(AfterQuery):
    """Which events, in which order."""

    before: Annotated[int, Field(ge=1, le=MAX_ID), IN_DIGITS] | None = None
    """Only those with ids below this: with `sort=-id`, what came before the last item of an answer."""
    kind: list[Text] = Field(default=[], max_length=16)
    """Only events of this kind; repeat it for any of several."""
    sort: Literal["id", "-id"] = "id"
    """Order; `-id` has the newest first."""
    fields: EventFields = None
