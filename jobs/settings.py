"""The settings of the service, read from the environment (`RANKZERO_…`) once per process."""

import socket
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError, field_validator
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, SettingsConfigDict

from jobs.access import Access
from jobs.addresses import parse_allowed
from jobs.checkpoint_roots import refuse_unknown
from jobs.errors import InvalidSettingsError
from jobs.roots import Roots, parse_code_roots, parse_data_roots


class Settings(BaseSettings):
    """Every setting, the same for API, worker and supervisor; each is an environment variable `RANKZERO_<NAME>`."""

    model_config = SettingsConfigDict(
        env_prefix="RANKZERO_", frozen=True, extra="ignore", use_attribute_docstrings=True
    )

    database_url: str = "sqlite:///rankzero.db"
    """SQLAlchemy URL of the database: `postgresql+psycopg://…` or `sqlite:///file`."""
    broker_url: str = "redis://127.0.0.1:6379/0"
    """Celery broker; it carries wake-ups only and may be lost at any time."""
    access: Access | None = None
    """Who may use the API. `loopback`: anybody at its own machine, with no token, and nobody else. `tokens`: whoever
    has a token. None takes `loopback` where `python -m api` listens on a loopback address, and else `tokens`."""
    key_file: Path | None = None
    """File with the key that seals secrets, read by nobody else (mode 0600); `python -m jobs.sealing FILE` makes one.
    The same for every API and worker. None leaves secrets, and webhooks' keys, turned off."""
    rate_limit: float = Field(default=100, ge=0)
    """Requests that a token may make in each second, of each API process, and twice as many at once; 0 sets no limit.
    Where no token is asked for there is none."""
    streams_per_user: int = Field(default=200, ge=0)
    """Event streams that a user may have open at once at each API process, by all tokens together; 0 sets no limit.
    Where no token is asked for there is none."""
    streams: int = Field(default=800, ge=0)
    """Event streams that an API process has open at most; 0 sets no limit. Each takes a file descriptor, of which a
    process has 1024 unless its operator allows it more."""
    run_root: Path = Path("runs")
    """Folder for the run directories of this host."""
    data_roots: str | None = None
    """Folders of this host that jobs may read data from, by name: `photos=/data/photos, maps=/srv/maps`. A job names
    its data `photos`, or `photos:folder` for what lies below. None lets jobs read whatever this worker can."""
    scripts: Literal["off", "on"] = "off"
    """Whether jobs may run programs of their users on this host (recipe `script`). `rankzero up` turns them on: it
    serves its own user alone."""
    code_roots: str | None = None
    """Folders of this host that such programs have to lie in, with their working folders: `/srv/code, /home`. None lets
    them lie anywhere."""
    host_name: str = Field(default_factory=socket.gethostname, max_length=255, pattern=r"^[^\s,/]+$")
    """Name under which this worker's devices are known, with no blank, comma or slash; one worker for each name."""
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
    ageing_s: float = Field(default=600, gt=0)
    """Seconds of waiting that count as much as one point of priority: a job of priority 0 is passed for at most 100
    times as long by jobs that come later. The same on every host, as all of the planner's settings."""
    fair_share_s: float = Field(default=3600, ge=0)
    """How far back in the line, in seconds of waiting, a user comes at most who has used all that was used lately."""
    fair_share_half_life_s: float = Field(default=86_400, gt=0)
    """Seconds after which use counts half in the fair share."""
    preemption_patience_s: float = Field(default=300, ge=0)
    """Nobody is stopped for a job that is foretold to start within so many seconds anyhow: to stop a run costs it what
    it has done since its last checkpoint, and the time to save and to start again."""
    retry_backoff_s: float = Field(default=10, ge=0)
    """Seconds that a job rests after its first lost attempt; twice as long after each further one."""
    retry_backoff_max_s: float = Field(default=600, ge=0)
    """The longest such rest, in seconds."""
    quarantine_after: int = Field(default=3, ge=0)
    """Attempts in a row that are lost on one GPU by a fault that may be its own, after which it is not handed out any
    more until somebody releases it; 0 never takes one away."""
    unkillable_s: float = Field(default=30, gt=0)
    """Seconds after which a device whose last process cannot be killed is taken away, and its job goes on elsewhere."""
    hang_limit_s: float = Field(default=1800, ge=1)
    """Seconds that a rank may be without progress, where the job does not say."""
    min_free_bytes: int = Field(default=1024**3, ge=0)
    """Space on this host's run root below which it gets no new jobs."""
    checkpoint_root: str | None = None
    """Where checkpoints are copied to as they are saved, so that other hosts can continue from them: a folder that the
    hosts share, or an fsspec URL (`s3://bucket/runs`). None leaves them in the run root alone."""
    copy_grace_s: float = Field(default=300, ge=0)
    """Seconds that a run which has ended keeps its devices at most while its last checkpoints are still being copied
    there. A cancelled one does not wait, nor one whose checkpoint root somebody has to mend (no permission)."""
    address: str | None = None
    """Name or address at which the ranks of other hosts reach this one, for jobs on several hosts. None finds the
    address that this host has towards the database."""
    rendezvous_ports: str = Field(default="29400-29499", pattern=r"^[0-9]{1,5}-[0-9]{1,5}$")
    """Ports of this host at which the ranks of jobs on several hosts may meet, one for each such job."""
    telemetry_s: float = Field(default=10, ge=0)
    """Seconds between two readings of the GPUs' utilisation, memory, temperature and power; 0 reads none."""
    telemetry_bucket_s: int = Field(default=60, ge=1)
    """Seconds that one stored figure stands for."""
    telemetry_days: float = Field(default=14, gt=0)
    """Days for which these are kept."""
    webhook_allow: str | None = None
    """Hosts, addresses and networks that webhooks may be sent to although they are not public, with commas between:
    `hooks.lan,10.0.0.0/8`. The same for API and workers."""
    webhook_days: float = Field(default=14, gt=0)
    """Days for which it is kept what webhooks were told."""
    feed_days: float = Field(default=1, gt=0)
    """Days for which event streams can resume: what happened before that is shown only by the other paths."""
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
        return _plain(path)

    @field_validator("data_roots")
    @classmethod
    def _data_roots(cls, text: str | None) -> str | None:
        parse_data_roots(text or "")
        return text

    @field_validator("code_roots")
    @classmethod
    def _code_roots(cls, text: str | None) -> str | None:
        parse_code_roots(text or "")
        return text

    @field_validator("webhook_allow")
    @classmethod
    def _hosts_or_networks(cls, text: str | None) -> str | None:
        parse_allowed(text)
        return text

    @field_validator("checkpoint_root")
    @classmethod
    def _absolute_or_url(cls, root: str | None) -> str | None:
        refuse_unknown(root or "")
        return root if root is None or "://" in root else str(_plain(Path(root)))

    @property
    def roots(self) -> Roots:
        """What this host's operator lets jobs read and start."""
        return Roots.parse(data=self.data_roots, scripts=self.scripts == "on", code=self.code_roots)

    def model_post_init(self, _context: object) -> None:
        if self.heartbeat_s * 3 > self.lease_s:
            raise ValueError(f"heartbeat_s: {self.heartbeat_s} must be at most a third of lease_s ({self.lease_s})")
        if self.tick_s * 2 > self.host_timeout_s:
            raise ValueError(f"tick_s: {self.tick_s} must be at most half of host_timeout_s ({self.host_timeout_s})")
        lowest, highest = map(int, self.rendezvous_ports.split("-"))
        if not 1 <= lowest <= highest <= 65535:
            raise ValueError(f"rendezvous_ports: {self.rendezvous_ports} is no range of ports, such as 29400-29499")


@cache
def get_settings() -> Settings:
    """Return the settings of this process. Raises InvalidSettingsError, for its start to show."""
    try:
        return Settings()
    except ValidationError as error:
        raise InvalidSettingsError("; ".join(_in_words(each) for each in error.errors())) from error


def _plain(path: Path) -> Path:
    """The absolute path without `..`: whether a file lies in a root is told by the words of both paths."""
    path = path.expanduser().absolute()
    return path.resolve() if ".." in path.parts else path


def _in_words(error: ErrorDetails) -> str:
    message = error["msg"].removeprefix("Value error, ")
    if not error["loc"]:
        return message
    return f"RANKZERO_{str(error['loc'][0]).upper()}={error['input']}: {message}"
