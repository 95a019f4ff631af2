"""Telemetry: a thread of the worker that reads the GPUs and brings what they did, summed up, into the database."""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pynvml
import structlog

from jobs.database import Database, now
from jobs.settings import Settings
from jobs.store import telemetry
from jobs.store.hosts import DeviceInfo
from jobs.store.telemetry import Stretch
from worker.clock import clock
from worker.gpus import Gpus, NvmlGpus, Reading
from worker.steps import attempted

KEEP_S = 3600
"""For how long readings are kept while the database is away."""
FORGET_S = 3600
"""Seconds between two deletions of what is too old."""
FORGET_AT_ONCE = 1000
"""Rows in one deletion: few enough to hold nobody up."""

log = structlog.get_logger()


@dataclass(frozen=True)
class _TimedReading:
    """What a GPU did at one time."""

    uuid: str
    read_at: float
    """On `worker.clock`."""
    reading: Reading


class Telemetry(threading.Thread):
    """Reads the GPUs of this host every `telemetry_s`, and writes every `telemetry_bucket_s` what they did."""

    def __init__(
        self, database: Database, settings: Settings, uuids: Sequence[str], gpus: Gpus, *, is_held: Callable[[], bool]
    ) -> None:
        """`is_held` says whether this worker has its host's name: without it, it writes nothing of that host."""
        super().__init__(name="telemetry", daemon=True)
        self._database = database
        self._settings = settings
        self._uuids = uuids
        self._gpus = gpus
        self._is_held = is_held
        kept = max(1, int(KEEP_S / settings.telemetry_s)) * len(uuids)
        self._readings: deque[_TimedReading] = deque(maxlen=kept)
        self._stopping = threading.Event()

    def run(self) -> None:
        """Read and write until stopped. While the database is away it only reads."""
        written_at, forgot_at = clock(), float("-inf")
        while not self._stopping.wait(self._settings.telemetry_s):
            self.read()
            with attempted("telemetry", self._database):
                if clock() - written_at >= self._settings.telemetry_bucket_s and self._is_held():
                    written_at = clock()
                    self.write()
                if clock() - forgot_at >= FORGET_S:
                    forgot_at = clock()
                    self._forget()

    def stop(self) -> None:
        """Stop; what was read and not written yet is lost."""
        self._stopping.set()

    @property
    def has_unwritten(self) -> bool:
        """Whether something was read that is not written yet."""
        return bool(self._readings)

    def read(self) -> None:
        """Read every GPU once."""
        for uuid in self._uuids:
            if (reading := self._gpus.read(uuid)) is not None:
                self._readings.append(_TimedReading(uuid, clock(), reading))

    def write(self) -> None:
        """Write what was read since the last time. Raises SQLAlchemy's errors: then it is written with the next."""
        readings = list(self._readings)
        with self._database.session_scope() as session:
            offset_s = now(session).timestamp() - clock()
            summed = sum_up(
                ((each.uuid, each.read_at + offset_s, each.reading) for each in readings),
                stretch_s=self._settings.telemetry_bucket_s,
            )
            telemetry.add(session, self._settings.host_name, summed)
        for _ in readings:
            self._readings.popleft()

    def _forget(self) -> None:
        older_than = timedelta(days=self._settings.telemetry_days)
        while not self._stopping.is_set():
            with self._database.session_scope() as session:
                if telemetry.forget(session, older_than=older_than, limit=FORGET_AT_ONCE) < FORGET_AT_ONCE:
                    return


def start(
    database: Database, settings: Settings, devices: Sequence[DeviceInfo], *, is_held: Callable[[], bool]
) -> Telemetry | None:
    """Begin to read the real GPUs among a host's devices; None where there are none, or the settings want none read."""
    uuids = [device.uuid for device in devices if device.uuid is not None and not device.simulated]
    if not uuids or not settings.telemetry_s:
        return None
    try:
        gpus = NvmlGpus()
    except pynvml.NVMLError as error:
        log.error("gpus_unreadable", error=str(error))
        return None
    thread = Telemetry(database, settings, uuids, gpus, is_held=is_held)
    thread.start()
    return thread


def sum_up(readings: Iterable[tuple[str, float, Reading]], *, stretch_s: int) -> list[Stretch]:
    """Sum readings up, each with its GPU and its time in seconds since the epoch, by GPU and stretch of time."""
    found: dict[tuple[str, int], list[Reading]] = {}
    for uuid, at_s, reading in readings:
        found.setdefault((uuid, int(at_s // stretch_s)), []).append(reading)
    return [
        Stretch(
            uuid=uuid,
            at=datetime.fromtimestamp(number * stretch_s, UTC),
            samples=len(each),
            utilisation=_mean(reading.utilisation for reading in each),
            memory_bytes=max((r.memory_bytes for r in each if r.memory_bytes is not None), default=None),
            temperature_c=max((r.temperature_c for r in each if r.temperature_c is not None), default=None),
            power_w=_mean(reading.power_w for reading in each),
        )
        for (uuid, number), each in sorted(found.items())
    ]


def _mean(values: Iterable[float | None]) -> float | None:
    told = [value for value in values if value is not None]
    return sum(told) / len(told) if told else None
