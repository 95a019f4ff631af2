"""Data sets as hosts publish them: what lies in a data root, counted, with a few samples by name."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict

Kind = Literal["image_folder", "coco", "yolo", "voc", "folder"]


class _Published(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", use_attribute_docstrings=True)


class Sample(_Published):
    """One sample, to know a data set by."""

    name: str
    """Path of its file, below the data set's folder."""
    classes: tuple[str, ...]


class Split(_Published):
    """One set of a data set."""

    samples: int
    classes: dict[str, int]
    """Samples of each class; of COCO, objects."""


class DataSet(_Published):
    """A data set that lies in a data root of a host."""

    name: str
    """What `train.data` calls it: `photos`, or `photos:june` for what lies below the root."""
    path: str
    """Its folder, on that host."""
    kind: Kind
    """How its files are laid out; `folder` where that is of no known kind."""
    splits: dict[str, Split]
    """`train` and `val`, or `all` where the trainer splits it; none where it was not counted."""
    preview: tuple[Sample, ...]
    """The first samples of each class."""
    complete: bool
    """False where there was more than a worker takes the time to look at: counts are of what it has seen."""
    note: str | None
    """What is wrong with it, or why it was not counted."""
    looked_at: datetime
    """When its host has looked at it."""
