"""Options of the data set `synthetic`. Never imports torch: the process that starts a run checks them."""

from pydantic import BaseModel, ConfigDict, Field


class SyntheticOptions(BaseModel):
    """How large the data set `synthetic` is."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    classes: int = Field(default=10, ge=2, le=10_000, strict=True)
    """Number of classes."""
    train: int = Field(default=2000, ge=1, le=10_000_000, strict=True)
    """Number of training images."""
    val: int = Field(default=500, ge=1, le=10_000_000, strict=True)
    """Number of validation images."""
