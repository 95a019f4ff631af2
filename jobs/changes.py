"""What a user may change: of a job that is there, and of the copy of one."""

from typing import Any

from pydantic import ConfigDict, Field, field_validator
from pydantic_core import PydanticCustomError

from jobs.device_count import Text
from jobs.spec import MOST_LABELS, CheckpointChoice, Device, LabelKey, LabelValue, StartFrom
from jobs.whole_numbers import WholeNumbers
from trainer.devices import MOST_PROCESSES


def no_default(schema: dict[str, Any]) -> None:
    """A field of a change: what is left out stays, and clients made of a schema with a default would send that."""
    del schema["default"]


def _never_null(schema: dict[str, Any]) -> None:
    schema.update(schema.pop("anyOf")[0])
    del schema["default"]  # None stands for a field that is left out; one that is sent as null is refused


class _Frozen(WholeNumbers):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)


class JobChanges(_Frozen):
    """Changes to a job, whatever its state; what is left out stays as it is."""

    priority: int | None = Field(default=None, ge=0, le=100, strict=True, json_schema_extra=_never_null)
    """Its new priority: its place in the line by the next plan."""
    labels: dict[LabelKey, LabelValue | None] = Field(
        default={}, max_length=2 * MOST_LABELS, json_schema_extra=no_default
    )
    """Labels that it gets, or that get another value; null takes one away, and those that are not named stay."""

    @field_validator("priority", mode="before")
    @classmethod
    def _refuse_null(cls, priority: Any) -> Any:
        if priority is None:
            raise PydanticCustomError("null", "leave it out to keep it as it is")
        return priority


class Place(_Frozen):
    """Where a paused job goes on; what is left out stays as it is."""

    device: Device | None = None
    """Other devices, in any form that a spec takes."""
    nproc_per_node: int | None = Field(default=None, ge=1, le=MOST_PROCESSES, strict=True)
    """Number of ranks for `device: "cpu"`; null for none."""
    host: Text | None = None
    """Only on the host of this name; null for any."""
    nodes: int | None = Field(default=None, ge=1, le=MOST_PROCESSES, strict=True)
    """Number of hosts; null for one."""

    @property
    def changes(self) -> dict[str, Any]:
        """What was given, as a merge patch over a spec."""
        return self.model_dump(mode="json", exclude_unset=True)


class CloneStart(CheckpointChoice):
    """The checkpoint that a clone starts from."""

    job: int | None = Field(default=None, ge=1, le=2**63 - 1, strict=True)
    """Id of the job that saved it; without one, the job that is cloned."""

    def of(self, job_id: int) -> StartFrom:
        """Return it for a clone of the job `job_id`."""
        return StartFrom(job=self.job or job_id, checkpoint=self.checkpoint, mode=self.mode)


class Clone(_Frozen):
    """A new job like another one, with changes."""

    changes: dict[str, Any] = Field(default={})
    """A JSON merge patch (RFC 7396) over the other's spec: `{"train": {"lr": 0.01}}`. Null takes a field out, which
    then has its default. Priority and labels are those that the other job has now."""
    start_from: CloneStart | None = None
    """The checkpoint that it starts from; without one, from where the other job did."""
