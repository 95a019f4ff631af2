"""The Celery application of a worker: two tasks, each an empty wake-up that may come twice, late or never."""

import os
import signal
import threading

import structlog
from celery.signals import worker_init, worker_shutdown

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
    """What one worker process keeps while it runs."""

    def __init__(self) -> None:
        self.settings = get_settings()
        self.database = get_database()
        self.care = Care(self.database, self.settings)
        self.tick = Tick(self.database, self.settings, self.care, on_orphaned=_end_with_owner)

    def start(self) -> None:
        """Register the host, then sweep. Raises what the database raises: a worker with none cannot start."""
        with self.database.session_scope() as session:
            hosts.register(
                session,
                self.settings.host_name,
                run_root=str(self.settings.run_root),
                devices=host.find_devices(self.settings),
            )
        self.tick.start()
        threading.Thread(target=self._publish_catalog, name="catalog", daemon=True).start()
        log.info("worker_started", host=self.settings.host_name)

    def stop(self) -> None:
        """Stop sweeping. Supervisors go on, unless they are a part of an embedded service that ends."""
        self.tick.stop()
        if self.settings.owner is not None:
            self.care.stop_supervisors(timeout_s=self.settings.checkpoint_grace_s + 5)

    def _publish_catalog(self) -> None:
        catalog = host.read_catalog()
        if catalog is not None:
            with self.database.session_scope() as session:
                hosts.set_catalog(session, self.settings.host_name, catalog)


_running: Worker | None = None


@app.task(name=PLAN)
def plan(_job_id: int) -> None:
    """Plan now: some job may start."""
    if _running is not None:
        _running.tick.plan()


@app.task(name=LAUNCH)
def launch(_placement_id: int) -> None:
    """Look after this host's placements now: one of them waits for its supervisor."""
    if _running is not None:
        _running.care.round()


@worker_init.connect
def _start(**_: object) -> None:
    """Before the broker is even tried: the service moves without it."""
    global _running  # noqa: PLW0603  # one worker a process, made by Celery's signal, used by its tasks
    _running = Worker()
    _running.start()


@worker_shutdown.connect
def _stop(**_: object) -> None:
    if _running is not None:
        _running.stop()


def _end_with_owner() -> None:
    """The embedded service's owner was killed: end at once, as the supervisors do."""
    os.kill(os.getpid(), signal.SIGKILL)
