"""The Celery application of a worker: two tasks, each an empty wake-up that may come twice, late or never."""

import os
import signal
import threading

import structlog

from jobs.database import get_database
from jobs.settings import get_settings
from jobs.store import hosts
from jobs.wakeups import LAUNCH, PLAN, get_celery
from worker import host
from worker.care import Care
from worker.tick import Tick

app = get_celery()
log = structlog.get_logger()


class Worker:
    """What one worker process keeps while it runs. It needs the database, and does without the broker."""

    def __init__(self) -> None:
        """Find this host's devices. Raises ValueError for settings that contradict what is there."""
        self._settings = get_settings()
        self._database = get_database()
        self.care = Care(self._database, self._settings)
        self.tick = Tick(
            self._database,
            self._settings,
            self.care,
            devices=host.find_devices(self._settings),
            on_orphaned=_end_with_owner,
        )

    def start(self) -> None:
        """Begin to sweep; the first sweep registers the host."""
        self.tick.start()
        threading.Thread(target=self._publish_catalog, name="catalog", daemon=True).start()

    def stop(self) -> None:
        """Stop sweeping. Runs go on, unless this is a part of an embedded service or of a container that ends."""
        self.tick.stop()
        if self._settings.owner is not None or not self._settings.runs_outlive_worker:
            self.care.stop_supervisors(timeout_s=self._settings.checkpoint_grace_s + 5)

    def _publish_catalog(self) -> None:
        catalog = host.read_catalog()
        self.tick.registered.wait()
        if catalog is not None:
            with self._database.session_scope() as session:
                hosts.set_catalog(session, self._settings.host_name, catalog)


running: Worker | None = None
"""The worker of this process, once `worker.__main__` has made it; the tasks below speak to it."""


@app.task(name=PLAN)
def plan(_job_id: int) -> None:
    """Plan now: some job may start."""
    if running is not None:
        running.tick.plan()


@app.task(name=LAUNCH)
def launch(_placement_id: int) -> None:
    """Look after this host's placements now: one of them waits for its supervisor."""
    if running is not None:
        running.care.round()


def _end_with_owner() -> None:
    """The embedded service's owner was killed: end at once, as the supervisors do."""
    os.kill(os.getpid(), signal.SIGKILL)
