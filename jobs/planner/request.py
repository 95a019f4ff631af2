"""A job's request for devices: all that the planner reads of a spec."""

from functools import lru_cache

from pydantic import BaseModel, ConfigDict, Field

from jobs.device_count import DeviceCount


class Request(BaseModel):
    """How many devices of which kind, on how many hosts. Equal requests compare, and hash, as equal."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    device: str | DeviceCount
    """A device list in its canonical form, or a number of CUDA devices of some kind: on each node."""
    per_node: int = Field(ge=1)
    """Devices on each node."""
    nodes: int = Field(default=1, ge=1)
    """Hosts, each with `per_node` devices: all of them at once, or none."""
    host: str | None = None
    """Only on the host of this name."""
    preemptible: bool = False
    """Whether it may be stopped, with a checkpoint, for a job of higher priority."""
    time_limit_s: float | None = Field(default=None, gt=0)
    """Seconds that it may train, over all attempts."""

    @property
    def device_count(self) -> int:
        """Number of devices, on all nodes."""
        return self.nodes * self.per_node


@lru_cache(maxsize=4096)
def parse_request(stored: str) -> Request:
    """Return the request of a job as `jobs.request` holds it. Raises ValueError for one that is none.

    Thousands of waiting jobs share a few requests, so each is read once.
    """
    return Request.model_validate_json(stored)
