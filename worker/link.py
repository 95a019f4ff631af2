"""The supervisor's link to the database: a thread that renews the lease, ships the files and reads the orders.

All talk with the database that the run depends on happens here, so that one that hangs never keeps the supervisor from
watching its ranks, nor from ending them in time.
"""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

import structlog
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from jobs.database import Database
from jobs.errors import StaleAttemptError
from jobs.settings import get_settings
from jobs.store import leases
from jobs.store.leases import Orders
from jobs.tables import Placement
from worker.clock import clock
from worker.shipping import Shipper

log = structlog.get_logger()

Result = TypeVar("Result")

POLL_S = 0.5
"""Seconds between two looks at the files and the orders."""


def patiently(database: Database, work: Callable[[Session], Result], *, until: float) -> Result:
    """Do `work` in one transaction, again and again while the database is away, but not past `until` on `clock`.

    It may be done twice: a commit whose answer was lost is done again.
    """
    while True:
        try:
            with database.session_scope() as session:
                return work(session)
        except SQLAlchemyError as error:
            if clock() > until:
                raise
            log.warning("database_away", error=str(error).splitlines()[0])
            time.sleep(POLL_S)


class Link(threading.Thread):
    """Keeps the database and one placement in touch, from the claim until `stop`."""

    def __init__(self, database: Database, placement: Placement, *, lease_until: float) -> None:
        super().__init__(name="link", daemon=True)
        self._database = database
        self._placement = placement
        self._shipper = Shipper(database, placement)
        self._is_shipped = False
        """The database has all that there was at the last look."""
        self._stopping = threading.Event()
        self.orders = Orders()
        """What is wanted of the placement, as last read."""
        self.lease_until = lease_until
        """Time on `clock` until which the devices are ours for certain."""
        self.fenced = False
        """The placement has ended without us: its ranks have no right to go on."""

    def run(self) -> None:
        """Renew, ship and read until told to stop or fenced. An outage is ridden out: the next round does the rest."""
        renewed_at = float("-inf")
        while not self._stopping.wait(POLL_S):
            try:
                if clock() - renewed_at >= get_settings().heartbeat_s:
                    self._renew()
                    renewed_at = clock()
                else:
                    self._read_orders()
                self._ship()
            except StaleAttemptError as error:
                log.warning("fenced", reason=str(error))
                self.fenced = True
                return
            except SQLAlchemyError as error:
                log.warning("database_away", error=str(error).splitlines()[0])
            except Exception:  # a defect of ours must not let the lease of a healthy run lapse
                log.exception("link_round_failed")

    def stop(self) -> None:
        """Stop, after the round that is under way."""
        self._stopping.set()
        self.join()

    def _ship(self) -> None:
        """Ship for at most a heartbeat: a long backlog must not keep the lease from being renewed."""
        self._is_shipped = False
        until = clock() + get_settings().heartbeat_s
        try:
            self._shipper.ship(until=until)
            self._is_shipped = clock() < until
        except OSError as error:  # the run directory cannot be read now; the lease is not its business
            log.warning("run_dir_unreadable", error=str(error))

    def _renew(self) -> None:
        sent_at = clock()  # before the transaction: the lease counts from a moment on the database's side after this
        with self._database.session_scope() as session:
            renewal = leases.renew(session, self._placement, is_shipped=self._is_shipped)
        self.orders, self.lease_until = renewal.orders, sent_at + renewal.lease_s

    def _read_orders(self) -> None:
        with self._database.session_scope(read_only=True) as session:
            self.orders = leases.read_orders(session, self._placement)
