"""A request for a number of devices, in place of a list of them."""

from typing import Annotated

from pydantic import ConfigDict, Field

from jobs.whole_numbers import WholeNumbers
from trainer.devices import MOST_PROCESSES

Text = Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[^\x00]*$")]
"""Text that every database can store: not empty, no NUL."""


class DeviceCount(WholeNumbers):
    """Any `count` CUDA devices of one host, in place of a device list."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)

    count: int = Field(ge=1, le=MOST_PROCESSES, strict=True)
    """How many devices; with `nodes`, on each of them."""
    host: Text | None = None
    """Only on the host of this name."""
    min_memory_gb: float | None = Field(default=None, gt=0, strict=True)
    """Only devices with at least this much memory, in 10^9 bytes."""
    name: Text | None = None
    """Only devices whose model name contains this text, upper or lower case."""
