"""The tick: a worker's periodic sweep, which does all that a lost wake-up would have done."""

import threading
from collections.abc import Callable, Sequence

import structlog
from sqlalchemy.exc import SQLAlchemyError

from jobs import wakeups
from jobs.database import Database
from jobs.planning import plan_once
from jobs.settings import Settings
from jobs.store import attempts, hosts
from trainer.process_identity import is_alive
from worker.care import Care

log = structlog.get_logger()


class Tick(threading.Thread):
    """Registers the host, then sweeps every `tick_s` until stopped."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        care: Care,
        *,
        devices: Sequence[hosts.DeviceInfo],
        on_orphaned: Callable[[], None],
    ) -> None:
        super().__init__(name="tick", daemon=True)
        self._database = database
        self._settings = settings
        self._care = care
        self._devices = devices
        self._on_orphaned = on_orphaned
        self._stopping = threading.Event()
        self.registered = threading.Event()
        """Set once the database knows of this host."""

    def run(self) -> None:
        """Sweep until stopped; a step that fails is tried again with the next sweep."""
        while True:
            if self._settings.owner is not None and not is_alive(self._settings.owner):
                self._on_orphaned()
                return
            if self._attempt(self._beat if self.registered.is_set() else self._register):
                # Own placements come before leases: what their files say is worth more than that time ran out.
                for step in (self._care.round, self._expire, self.plan, self._care.round):
                    self._attempt(step)
            if self._stopping.wait(self._settings.tick_s):
                return

    def stop(self) -> None:
        """Stop after the sweep that is under way."""
        self._stopping.set()
        self.join()

    def plan(self) -> None:
        """Plan, then wake the hosts that have something to launch."""
        with self._database.session_scope() as session:
            launches = plan_once(session)
        for launch in launches:
            log.info("planned", job_id=launch.job_id, attempt=launch.attempt, host=launch.host_name)
            wakeups.wake_host(launch.host_name, launch.placement_id)

    def _attempt(self, step: Callable[[], None]) -> bool:
        """Do one step; whatever goes wrong in it must not end the sweep, which is what rescues everything else."""
        try:
            step()
        except SQLAlchemyError as error:
            log.warning("database_away", step=step.__name__, error=str(error).splitlines()[0])
            return False
        except Exception:  # a defect of ours, told in the log with its traceback
            log.exception("step_failed", step=step.__name__)
            return False
        return True

    def _register(self) -> None:
        settings = self._settings
        with self._database.session_scope() as session:
            hosts.register(session, settings.host_name, run_root=str(settings.run_root), devices=self._devices)
        self.registered.set()
        log.info("registered", host=settings.host_name, devices=len(self._devices))

    def _beat(self) -> None:
        with self._database.session_scope() as session:
            hosts.beat(session, self._settings.host_name)

    def _expire(self) -> None:
        with self._database.session_scope() as session:
            lost = attempts.expire(session)
        for job_id, attempt in lost:
            log.warning("lease_expired", job_id=job_id, attempt=attempt)
