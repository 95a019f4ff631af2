"""What the API takes and answers where checkpoints are removed."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from api.models import Checkpoint
from jobs.store.checkpoints import Kept


class Prune(BaseModel):
    """Which checkpoints of a job are to stay."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    keep: Annotated[list[Kept], Field(max_length=2, examples=[["best", "last"]])]
    """`best`, `last`, both or none; those that a run may still need stay in any case."""


class PrunedCheckpoints(BaseModel):
    """What became of a job's checkpoints."""

    model_config = ConfigDict(from_attributes=True, frozen=True, use_attribute_docstrings=True)

    removed: list[Checkpoint]
    """Those that are gone now, or as soon as their host gets to it."""
    kept: list[Checkpoint]
