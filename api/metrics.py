"""What the API takes and answers of metrics: which values are wanted, and which metrics there are."""

from typing import Annotated, Literal, Self

from pydantic import AliasPath, BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from api.integers import IN_DIGITS
from api.pages import PageQuery
from api.queries import Number, Text
from jobs.errors import InvalidFilterError

MOST_POINTS = 100_000
"""Values in an answer that is thinned, over all names."""


class MetricQuery(PageQuery):
    """Which metric values, and in which form."""

    name: list[Text] = Field(default=[], max_length=256)
    """Only the metric of this name; repeat it for any of several."""
    from_step: Number = 0
    """Only values after at least this many steps."""
    to_step: Number | None = None
    """Only values after at most this many steps."""
    points: Annotated[int, Field(ge=2, le=10_000), IN_DIGITS] | None = None
    """At most so many values of each metric, all in one answer: of each stretch of steps the lowest and the highest and
    the first that is not finite, besides the first and the last of all."""
    format: Literal["json", "csv"] | None = None
    """`csv` for all values as CSV, with no pages, as the header `Accept: text/csv` also asks for."""

    @model_validator(mode="after")
    def _has_one_way_to_be_short(self) -> Self:
        if self.points is not None and (given := self.model_fields_set & {"cursor", "size"}):
            why = "with points, all is in one answer: there are no pages"
            raise PydanticCustomError("exclusive", "{why}", {"why": why, "field": min(given)})
        return self

    def check_points(self, metrics: int) -> int:
        """Return the points of each metric. Raises InvalidFilterError where those of all would be too many."""
        assert self.points is not None
        if self.points * metrics > MOST_POINTS:
            fitting = f"at most {MOST_POINTS // metrics} of each of {metrics} metrics, or of fewer: `name` picks some"
            raise InvalidFilterError("points", f"one answer has at most {MOST_POINTS} values; ask for {fitting}")
        return self.points


class MetricName(BaseModel):
    """What the whole series of one metric comes to."""

    model_config = ConfigDict(from_attributes=True, frozen=True, use_attribute_docstrings=True)

    name: str
    count: int
    """Steps that have a value."""
    first_step: int
    last_step: int = Field(validation_alias=AliasPath("last", "step"))
    last_value: float | None = Field(validation_alias=AliasPath("last", "value"))
    """The value at the last step; null where it is not finite."""
    last_kind: Literal["nan", "inf", "-inf"] | None = Field(validation_alias=AliasPath("last", "kind"))
    """What it is where it is not finite."""


class MetricNames(BaseModel):
    """All metrics of a job, by name."""

    items: list[MetricName]
