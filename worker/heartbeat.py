"""The heartbeat: says that this host's worker lives while a sweep takes so long that the sweeps alone do not say it."""

import threading
from collections.abc import Callable

import structlog
from sqlalchemy.exc import SQLAlchemyError

from jobs.errors import HostNameTakenError
from worker.registration import Registration

log = structlog.get_logger()


class Heartbeat(threading.Thread):
    """Beats whenever nobody has for `every_s`, until stopped.

    Not while sweeps stand still (`stands_still`): what the planner gave such a host, nobody would look after.
    """

    def __init__(self, registration: Registration, *, every_s: float, stands_still: Callable[[], bool]) -> None:
        super().__init__(name="heartbeat", daemon=True)
        self._registration = registration
        self._every_s = every_s
        self._stands_still = stands_still
        self._stopping = threading.Event()

    def run(self) -> None:
        """Beat until stopped. What fails is tried again with the next beat, or by the next sweep."""
        while not self._stopping.wait(self._every_s / 2):
            if self._stands_still():
                continue
            try:
                self._registration.beat_after(self._every_s)
            except SQLAlchemyError as error:
                log.warning("database_away", step="heartbeat", error=str(error).splitlines()[0])
            except HostNameTakenError as error:
                log.error("host_name_taken", reason=str(error))
            except Exception:  # a defect of ours, told in the log with its traceback
                log.exception("step_failed", step="heartbeat")

    def stop(self) -> None:
        """Stop after the beat that is under way."""
        self._stopping.set()
        self.join()
