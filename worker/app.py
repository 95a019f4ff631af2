"""The Celery application of a worker: two tasks, each an empty wake-up that may come twice, late or never."""

import os
import signal

import structlog
from celery.signals import setup_logging

from jobs.database import get_database
from jobs.settings import get_settings
from jobs.wakeups import LAUNCH, PLAN, get_celery
from worker import host, telemetry
from worker.care import Care
from worker.data_sets import DataSets
from worker.files import Files
from worker.fitness import Fitness
from worker.heartbeat import Heartbeat
from worker.planning import Planning
from worker.registration import Registration
from worker.storage import Storages
from worker.telemetry import Telemetry
from worker.tick import Tick
from worker.webhooks import Webhooks

app = get_celery()
log = structlog.get_logger()


class Worker:
    """What one worker process keeps while it runs. It needs the database, and does without the broker."""

    def __init__(self) -> None:
        """Find this host's devices. Raises ValueError for settings that contradict each other or what is there."""
        self._settings = get_settings()
        database = get_database()
        self.storages = Storages(database, self._settings)
        devices = host.find_devices(self._settings)
        fitness = Fitness(self._settings.run_root)
        self.registration = Registration(database, self._settings, devices, self.storages, fitness)
        self._devices = devices
        self._database = database
        self._telemetry: Telemetry | None = None
        self.care = Care(database, self._settings, fitness)
        self.planning = Planning(database)
        self._webhooks = Webhooks(database, self._settings)
        self._files = Files(database, self._settings.host_name)
        self._data_sets = DataSets(
            database,
            self._settings.host_name,
            self._settings.roots.data,
            is_held=lambda: self.registration.is_held,
        )
        self.tick = Tick(
            database, self._settings, self.registration, self.care, self.planning, on_orphaned=_end_with_owner
        )
        self._heartbeat = Heartbeat(
            self.registration, every_s=self._settings.tick_s, stands_still=self.tick.stands_still
        )

    def start(self) -> None:
        """Begin to sweep; the first sweep registers the host."""
        self.registration.read_catalog()
        self.storages.start(self.registration.publish_status)
        self.planning.start()
        self._files.start()
        self._data_sets.start()
        self.tick.start()
        self._heartbeat.start()
        self._webhooks.start()
        self._telemetry = telemetry.start(
            self._database, self._settings, self._devices, is_held=lambda: self.registration.is_held
        )

    def stop(self) -> None:
        """Stop sweeping. Runs go on, unless this is a part of an embedded service or of a container that ends."""
        if self._telemetry is not None:
            self._telemetry.stop()
        self._files.stop()
        self._data_sets.stop()
        self.storages.stop()
        self._webhooks.stop()
        self.tick.stop()
        self._heartbeat.stop()
        self.planning.stop()
        if self._settings.owner is not None or not self._settings.runs_outlive_worker:
            self.care.stop_supervisors(timeout_s=self._settings.checkpoint_grace_s + 5)


@setup_logging.connect
def _leave_logging_alone(**_: object) -> None:
    """Celery sets up logging of its own unless somebody listens to this; ours is set up (jobs.logs)."""


running: Worker | None = None
"""The worker of this process, once `worker.__main__` has made it; the tasks below speak to it."""


@app.task(name=PLAN)
def plan(_job_id: int) -> None:
    """Plan soon: some job may start."""
    if running is not None and running.registration.is_held:
        running.planning.ask()


@app.task(name=LAUNCH)
def launch(_placement_id: int) -> None:
    """Look after this host's placements now: one of them waits for its supervisor."""
    if running is not None and running.registration.is_held:
        running.care.round()


def _end_with_owner() -> None:
    """The embedded service's owner was killed: end at once, as the supervisors do."""
    os.kill(os.getpid(), signal.SIGKILL)
