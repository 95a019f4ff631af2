"""Whether the process lives, and whether it can do its work."""

from fastapi import APIRouter

from api.broker import BrokerView
from api.models import Alive, Ready
from api.session import reading
from jobs.store import schema

router = APIRouter(tags=["health"])
_broker = BrokerView()


@router.get("/healthz", summary="Is the process alive?")
async def healthz() -> Alive:
    """Answer as long as the process does, also while every thread waits for the database."""
    return Alive()


@router.get("/readyz", summary="Can the service take jobs?")
def readyz() -> Ready:
    """Answer 200 if the database answers and has the schema this version needs, else 503.

    The broker is reported and not required: it only carries wake-ups.
    """
    with reading() as session:  # over before the broker keeps us waiting
        schema.require_current(session)
    return Ready(broker="answers" if _broker.answers() else "silent")
