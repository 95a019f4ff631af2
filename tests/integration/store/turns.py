"""Transactions that meet: threads that come at the same time, and the moment when one waits for another's row."""

import threading
from collections.abc import Callable

from sqlalchemy import func, select, text

from jobs.database import Database
from tests.waiting import wait_until


def in_threads(count: int, work: Callable[[], None]) -> None:
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def wait_for_blocked(database: Database, *, transactions: int = 1) -> None:
    """Wait until so many transactions wait for a lock that another holds."""

    def blocked() -> bool:
        with database.session_scope(read_only=True) as session:
            query = select(func.count()).select_from(text("pg_stat_activity"))
            waiting = text("datname = current_database() AND wait_event_type = 'Lock'")
            return session.execute(query.where(waiting)).scalar_one() >= transactions

    wait_until(blocked, timeout_s=10, what="transactions to wait for a lock")
