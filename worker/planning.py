"""A worker's part in the planning: rounds for those who ask, and launches for what they start."""

import threading

import structlog
from sqlalchemy.exc import SQLAlchemyError

from jobs import wakeups
from jobs.database import Database
from jobs.planning import plan_unless_planned

log = structlog.get_logger()


class Planning(threading.Thread):
    """Plans whenever it is asked to. However often that is during one round, the next answers them all: a thousand jobs
    that are submitted at once cost a few rounds, and keep no task of the worker waiting."""

    def __init__(self, database: Database) -> None:
        super().__init__(name="planning", daemon=True)
        self._database = database
        self._asked = threading.Event()
        self._stopping = False

    def ask(self) -> None:
        """Have a round soon that sees all that is committed now. Returns at once."""
        self._asked.set()

    def plan(self, *, unless_within_s: float = 0) -> None:
        """Plan, unless any worker has within that time, then wake the hosts that have something to launch."""
        with self._database.session_scope() as session:
            launches = plan_unless_planned(session, within_s=unless_within_s)
        for launch in launches:
            log.info("planned", job_id=launch.job_id, attempt=launch.attempt, host=launch.host_name)
            wakeups.wake_host(launch.host_name, launch.placement_id)

    def run(self) -> None:
        """Plan for those who ask, until stopped. What fails is left to the tick."""
        while True:
            self._asked.wait()
            self._asked.clear()  # before the round reads anything: who asks from now on gets another one
            if self._stopping:
                return
            try:
                self.plan()
            except SQLAlchemyError as error:
                log.warning("database_away", step="planning", error=str(error).splitlines()[0])
            except Exception:  # a defect of ours, told in the log with its traceback
                log.exception("step_failed", step="planning")

    def stop(self) -> None:
        """Stop after the round that is under way."""
        self._stopping = True
        self._asked.set()
        self.join()
