"""What the service answers with about recipes and data sets, as the client returns it."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from rankzero.models import Answer


class RecipeSummary(Answer):
    """A recipe: how model, data, loss and metrics of a task are built."""

    name: str
    """What `train.recipe` calls it."""
    description: str
    models: tuple[str, ...]
    """What `train.model` may be with it; empty where it takes none."""
    hosts: tuple[str, ...]
    """The hosts that have it."""


class RecipeVariant(Answer):
    """A recipe as some hosts have it."""

    hosts: tuple[str, ...]
    description: str
    models: tuple[str, ...]
    options_schema: Mapping[str, Any]
    """JSON schema of what `train.options` may hold with it."""


class Recipe(RecipeSummary):
    """A recipe with its options."""

    variants: tuple[RecipeVariant, ...]
    """One, unless hosts have it in several releases; that of the most hosts first."""


class DataSetSummary(Answer):
    """A data set that jobs can name."""

    name: str
    """What `train.data` calls it."""
    kind: str
    """`builtin`, `image_folder`, `coco`, `yolo`, `voc` or `folder`."""
    description: str | None
    hosts: tuple[str, ...]
    """The hosts that have it, and run the jobs that name it."""
    samples: int | None
    """None where nobody has counted."""
    classes: int | None
    """Number of its classes."""


class LyingDataSet(Answer):
    """A data set as it lies on one host."""

    host: str
    path: str
    kind: str
    splits: Mapping[str, Any]
    """Samples and classes of `train` and `val`, or of `all` where the trainer splits it."""
    preview: tuple[Any, ...]
    """A few samples of each class."""
    complete: bool
    """False where there was more than a worker takes the time to look at."""
    note: str | None
    looked_at: datetime


class DataSet(DataSetSummary):
    """A data set, and what its hosts have found where it lies."""

    on: tuple[LyingDataSet, ...]
