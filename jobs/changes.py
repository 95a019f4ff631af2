"""What a user may change: of a job that is there, and of the copy of one."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import PydanticCustomError

from jobs.spec import CheckpointChoice, LabelKey, LabelValue, StartFrom


def _without_default(schema: dict[str, Any]) -> None:
    del schema["default"]  # null stands for a field that was left out, and is refused where it is sent


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)


class JobChanges(_Frozen):
    """Changes to a job, whatever its state; what is left out stays as it is."""

    priority: Annotated[int, Field(ge=0, le=100)] | SkipJsonSchema[None] = Field(
        default=None, json_schema_extra=_without_default
    )
    """Its new priority: its place in the line by the next plan."""
    labels: dict[LabelKey, LabelValue | None] | SkipJsonSchema[None] = Field(
        default=None, max_length=128, json_schema_extra=_without_default
    )
    """Labels that it gets, or that get another value; null takes one away, and those that are not named stay."""

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_null(cls, value: Any) -> Any:
        if value is None:
            raise PydanticCustomError("null", "leave it out to keep it as it is")
        return value


class CloneStart(CheckpointChoice):
    """The checkpoint that a clone starts from."""

    job: int | None = Field(default=None, ge=1, le=2**63 - 1, strict=True)
    """Id of the job that saved it; without one, the job that is cloned."""

    def of(self, job_id: int) -> StartFrom:
        """Return it for a clone of the job `job_id`."""
        return StartFrom(job=self.job or job_id, checkpoint=self.checkpoint, mode=self.mode)


class Clone(_Frozen):
    """A new job like another one, with changes."""

    changes: dict[str, Any] = {}
    """A JSON merge patch (RFC 7396) over the other's spec: `{"train": {"lr": 0.01}}`. Null takes a field out, which
    then has its default. Priority and labels are those that the other job has now."""
    start_from: CloneStart | None = None
    """The checkpoint that it starts from; without one, from where the other job did."""
