"""Fencing switched off: with this folder on its path, a host's supervisors write for attempts that have ended.

Python imports this module by itself when it starts. Only the service's own processes are changed, not the user's ranks.
"""

import sys

if any(each.partition(".")[0] == "worker" for each in sys.orig_argv):
    from sqlalchemy.orm import Session

    from jobs.errors import StaleAttemptError
    from jobs.store import attempts, leases
    from jobs.store.leases import Orders
    from jobs.tables import Placement

    read_orders = leases.read_orders

    def let_pass(*_: object, **__: object) -> None:
        """Stand in for `fence`, and look at nothing."""

    def read_orders_of_any(session: Session, placement: Placement) -> Orders:
        """Stand in for `read_orders`, by which a supervisor learns as well that it is stale."""
        try:
            return read_orders(session, placement)
        except StaleAttemptError:
            return Orders()

    attempts.fence = let_pass
    leases.read_orders = read_orders_of_any
