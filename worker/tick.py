"""The tick: a worker's periodic sweep, which does all that a lost wake-up would have done."""

import threading
from collections.abc import Callable
from datetime import datetime, timedelta

import structlog
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from jobs import wakeups
from jobs.database import Database, is_locked, now
from jobs.errors import HostNameTakenError
from jobs.settings import Settings
from jobs.store import endings, feed, leases
from trainer.process_identity import is_alive
from worker import missing_schema
from worker.care import Care
from worker.clock import clock
from worker.planning import Planning
from worker.registration import Registration

FORGET_S = 600
"""Seconds between two looks at what is old of the feed."""

log = structlog.get_logger()


class Tick(threading.Thread):
    """Sweeps every `tick_s` until stopped, once this worker has its host's name."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        registration: Registration,
        care: Care,
        planning: Planning,
        *,
        on_orphaned: Callable[[], None],
    ) -> None:
        super().__init__(name="tick", daemon=True)
        self._database = database
        self._settings = settings
        self._registration = registration
        self._care = care
        self._planning = planning
        self._on_orphaned = on_orphaned
        self._in_touch_since = float("inf")
        """Time on `clock` from which on the database has answered every step."""
        self._in_step_since = float("inf")
        """Time on `clock` from which on the database's clock has gone as fast as this one."""
        self._times: tuple[datetime, float] | None = None
        """The database's time as it was last read, and that on `clock` at the same moment."""
        self._began_at = clock()
        """Time on `clock` when the last sweep began."""
        self._lacks_schema = False
        """Whether that is so, and told."""
        self._forgot_at = float("-inf")
        """Time on `clock` when nothing of the feed was left that nobody can ask for any more."""
        self._stopping = threading.Event()

    def run(self) -> None:
        """Sweep until stopped; a step that fails is tried again with the next sweep."""
        while True:
            if self._settings.owner is not None and not is_alive(self._settings.owner):
                self._on_orphaned()
                return
            self._began_at = clock()
            if self._attempt(self._keep):
                # Own placements come before leases: what their files say is worth more than that time ran out.
                for step in (self._care.round, self._expire, self._plan, self._care.round, self._forget):
                    self._attempt(step)
            if self._stopping.wait(self._settings.tick_s):
                return

    def stands_still(self) -> bool:
        """Whether a sweep has been under way for so long that the runs planned here meanwhile lose their leases."""
        return clock() - self._began_at > self._settings.lease_s

    def stop(self) -> None:
        """Stop after the sweep that is under way."""
        self._stopping.set()
        self.join()

    def _attempt(self, step: Callable[[], None]) -> bool:
        """Do one step; whatever goes wrong in it must not end the sweep, which is what rescues everything else."""
        try:
            step()
        except SQLAlchemyError as error:
            self._in_touch_since = float("inf")
            self._tell(step, error)
            return False
        except HostNameTakenError as error:
            log.error("host_name_taken", reason=str(error))
            return False
        except Exception:  # a defect of ours, told in the log with its traceback
            log.exception("step_failed", step=step.__name__)
            return False
        self._in_touch_since, self._lacks_schema = min(self._in_touch_since, clock()), False
        return True

    def _tell(self, step: Callable[[], None], error: SQLAlchemyError) -> None:
        """Say that the database is away; or once that somebody has to bring it its schema, until that is there."""
        if not missing_schema.is_missing(self._database):
            log.warning("database_away", step=step.__name__, error=str(error).splitlines()[0])
        elif not self._lacks_schema:
            self._lacks_schema = True
            log.error(
                "schema_missing", reason=f"the database lacks this version's schema; run: {missing_schema.UPGRADE}"
            )

    def _keep(self) -> None:
        """Keep the registration, and the database open to writers: one of ours may be stopped with SQLite's lock."""
        try:
            self._registration.keep()
        except SQLAlchemyError as error:
            if is_locked(error):
                self._kill_expired()
            raise

    def _kill_expired(self) -> None:
        """Kill this host's supervisors that are past their lease, of which one may have the lock that all wait for.

        Readers need no lock. PostgreSQL itself ends a transaction whose owner has stopped.
        """
        with self._database.session_scope(read_only=True) as session:
            at = self._read_time(session)
            if self._is_too_soon_after(self._in_step_since):
                return
            expired = leases.expired(session, at)
        self._care.kill_expired(expired)

    def _plan(self) -> None:
        """Plan, unless any worker has since this one's last sweep."""
        self._planning.plan(unless_within_s=self._settings.tick_s * 0.9)

    def _forget(self) -> None:
        """Delete what is old of the feed, a part at each sweep, and then nothing for a while."""
        if clock() - self._forgot_at < FORGET_S:
            return
        with self._database.session_scope() as session:
            gone = feed.forget(session, older_than=timedelta(days=self._settings.feed_days))
        if gone < feed.FORGOTTEN_AT_ONCE:
            self._forgot_at = clock()

    def _expire(self) -> None:
        """End what nobody renews; not while those who do may be only just finding their way back.

        That is after an outage, and after a step of the database's clock, by which every lease seems to have run out.
        """
        with self._database.session_scope(read_only=True) as session:
            at = self._read_time(session)
            if self._is_too_soon_after(max(self._in_touch_since, self._in_step_since)):
                return
            expired = leases.expired(session, at)
        # Of this host's own, what their files say is shipped first.
        own = self._care.end_expired({placement.id for placement in expired})
        for placement in expired:
            if placement.id in own:
                continue
            with self._database.session_scope() as session:
                is_lost = endings.expire(session, placement)
            if is_lost:
                whose = {"job_id": placement.job_id, "attempt": placement.attempt, "host": placement.host_name}
                log.warning("lease_expired", **whose)
                wakeups.wake_planner(placement.job_id)

    def _is_too_soon_after(self, since: float) -> bool:
        """Whether supervisors have not had the time to renew since that time on `clock`."""
        return clock() - since < 2 * self._settings.heartbeat_s

    def _read_time(self, session: Session) -> datetime:
        """Return the database's time, and remember since when its clock has not been set forward."""
        before, at, read_at = self._times, now(session), clock()
        self._times = at, read_at
        # What is less than a heartbeat leaves each lease the time for its next renewal.
        gained_s = float("inf") if before is None else (at - before[0]).total_seconds() - (read_at - before[1])
        if gained_s > self._settings.heartbeat_s:
            self._in_step_since = read_at
            if before is not None:
                log.warning("database_clock_stepped", seconds=round(gained_s))
        return at
