"""Options of the data set `synthetic`. Never imports torch: the process that starts a run checks them."""

from pydantic import Field

from trainer.option_model import OptionModel


class SyntheticOptions(OptionModel):
    """How large the data set `synthetic` is."""

    classes: int = Field(default=10, ge=2, le=10_000)
    """Number of classes."""
    train: int = Field(default=2000, ge=1, le=10_000_000)
    """Number of training images."""
    val: int = Field(default=500, ge=1, le=10_000_000)
    """Number of validation images."""
