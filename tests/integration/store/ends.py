"""Ends of placements, as tests bring them about, and what comes of their devices."""

from typing import Any

import pytest
from sqlalchemy import select

from jobs.settings import get_settings
from jobs.states import StopOrder
from jobs.store import attempts, endings
from jobs.store.endings import Conclusion
from jobs.tables import DeviceRow, Placement
from tests.integration.store.conftest import Service

KILLED = {"cause": "killed_by_signal", "message": "rank 1 was ended by SIGKILL", "rank": 1}
LOST_PEERS = {"cause": "communication", "message": "node 0 lost its peers", "rank": None}


def end(service: Service, placement: Placement, **how: Any) -> Conclusion | None:
    with service.database.session_scope() as session:
        return endings.end_placement(session, placement, **({"completed": False} | how))


def order_stop(service: Service, placement: Placement, order: StopOrder) -> bool:
    whose = {"job_id": placement.job_id, "attempt": placement.attempt}
    with service.database.session_scope() as session:
        return attempts.order_stop(session, order, "the reason", **whose)


def devices(service: Service) -> dict[tuple[str, str], DeviceRow]:
    with service.database.session_scope(read_only=True) as session:
        return {(row.host_name, row.name): row for row in session.scalars(select(DeviceRow))}


def set_limits(monkeypatch: pytest.MonkeyPatch, **settings: object) -> None:
    """Settings of this process, for the rest of the test; the store's fixture forgets them afterwards."""
    for name, value in settings.items():
        monkeypatch.setenv(f"RANKZERO_{name.upper()}", str(value))
    get_settings.cache_clear()
