"""The settings of the service, read from the environment (`RANKZERO_…`) once per process."""

import socket
from functools import cache
from pathlib import Path

from pydantic import Field, ValidationError, field_validator
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, SettingsConfigDict

from jobs.errors import InvalidSettingsError


class Settings(BaseSettings):
    """Every setting, the same for API, worker and supervisor; each is an environment variable `RANKZERO_<NAME>`."""

    model_config = SettingsConfigDict(
        env_prefix="RANKZERO_", frozen=True, extra="ignore", use_attribute_docstrings=True
    )

    database_url: str = "sqlite:///rankzero.db"
    """SQLAlchemy URL of the database: `postgresql+psycopg://…` or `sqlite:///file`."""
    broker_url: str = "redis://127.0.0.1:6379/0"
    """Celery broker; it carries wake-ups only and may be lost at any time."""
    run_root: Path = Path("runs")
    """Folder for the run directories of this host."""
    host_name: str = Field(default_factory=socket.gethostname, max_length=255, pattern=r"^[^\s,]+$")
    """Name under which this worker's devices are known; one worker for each name."""
    lease_s: float = Field(default=120, gt=0)
    """How long an attempt keeps its devices with no word from its supervisor, in seconds. An outage of database or
    network of up to half of this is ridden out; in a longer one the ranks save a checkpoint and end before it is over.
    The same on every host."""
    heartbeat_s: float = Field(default=5, gt=0)
    """Seconds between two renewals of a lease; at most a third of `lease_s`."""
    tick_s: float = Field(default=2, gt=0)
    """Seconds between two sweeps of a worker: plan, launch, look after the host's supervisors."""
    host_timeout_s: float = Field(default=15, gt=0)
    """Seconds without a word after which a host gets no new jobs."""
    stop_grace_s: float = Field(default=5, gt=0)
    """Seconds that ranks get to stop by themselves before they are killed, when a job is cancelled."""
    checkpoint_grace_s: float = Field(default=30, gt=0)
    """Seconds that ranks get to save a checkpoint when a job is paused, its host shut down, or cut off; for the last at
    most a quarter of `lease_s`."""
    cpu_slots: int | None = Field(default=None, ge=0, le=4096)
    """CPU ranks this host runs at once; None takes the number of cores."""
    simulated_devices: int = Field(default=0, ge=0, le=1024)
    """CUDA devices this host pretends to have, to try the service on a machine with none; they compute on the CPU."""
    log_limit_bytes: int = Field(default=16 * 1024 * 1024, ge=0)
    """Output of one rank, in bytes for each attempt, kept in the database; the rest stays in the run directory."""
    owner: str | None = None
    """`pid:start time` of the process that this service ends with, set by `rankzero up`; None outlives its starter."""
    runs_outlive_worker: bool = True
    """Whether runs go on when this host's worker is stopped in order. False where they cannot, as in a container: then
    they save a checkpoint first, and their jobs are queued again."""
    log_level: str = "INFO"
    """Level of the service's own log."""

    @field_validator("run_root")
    @classmethod
    def _absolute(cls, path: Path) -> Path:
        return path.expanduser().absolute()

    def model_post_init(self, _context: object) -> None:
        if self.heartbeat_s * 3 > self.lease_s:
            raise ValueError(f"heartbeat_s: {self.heartbeat_s} must be at most a third of lease_s ({self.lease_s})")
        if self.tick_s * 2 > self.host_timeout_s:
            raise ValueError(f"tick_s: {self.tick_s} must be at most half of host_timeout_s ({self.host_timeout_s})")


@cache
def get_settings() -> Settings:
    """Return the settings of this process. Raises InvalidSettingsError, for its start to show."""
    try:
        return Settings()
    except ValidationError as error:
        raise InvalidSettingsError("; ".join(_in_words(each) for each in error.errors())) from error


def _in_words(error: ErrorDetails) -> str:
    message = error["msg"].removeprefix("Value error, ")
    if not error["loc"]:
        return message
    return f"RANKZERO_{str(error['loc'][0]).upper()}={error['input']}: {message}"
