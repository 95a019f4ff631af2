"""What the API answers of data sets."""

from datetime import datetime
from typing import Literal

from pydantic import AliasPath, BaseModel, ConfigDict, Field

from jobs.data_sets import Kind, Sample, Split


class _Shown(BaseModel):
    model_config = ConfigDict(from_attributes=True, frozen=True, use_attribute_docstrings=True)


class DataSetSummary(_Shown):
    """A data set that jobs can name."""

    name: str
    """What `train.data` calls it."""
    kind: Kind | Literal["builtin"]
    """How its files are laid out, on the first of its hosts; `builtin` where trainers know it by name."""
    description: str | None
    hosts: list[str]
    """The hosts that have it, and run the jobs that name it."""
    samples: int | None
    """In all of its sets, on the first of its hosts; null where nobody has counted."""
    classes: int | None
    """Number of its classes there."""


class LyingDataSet(_Shown):
    """A data set as it lies on one host."""

    host: str
    path: str = Field(validation_alias=AliasPath("data_set", "path"))
    kind: Kind = Field(validation_alias=AliasPath("data_set", "kind"))
    splits: dict[str, Split] = Field(validation_alias=AliasPath("data_set", "splits"))
    """`train` and `val`, or `all` where the trainer splits it; none where it was not counted."""
    preview: list[Sample] = Field(validation_alias=AliasPath("data_set", "preview"))
    """The first samples of each class."""
    complete: bool = Field(validation_alias=AliasPath("data_set", "complete"))
    """False where there was more than a worker takes the time to look at: counts are of what it has seen."""
    note: str | None = Field(validation_alias=AliasPath("data_set", "note"))
    """What is wrong with it, or why it was not counted."""
    looked_at: datetime = Field(validation_alias=AliasPath("data_set", "looked_at"))
    """When its host has looked at it; it does every quarter of an hour."""


class DataSet(DataSetSummary):
    """A data set, and what its hosts have found where it lies."""

    on: list[LyingDataSet] = Field(validation_alias="lying")
    """One for each host whose data root has it."""


class DataSets(_Shown):
    """Every data set that some host has."""

    items: list[DataSetSummary]
