"""Hosts and their devices."""

from fastapi import APIRouter

from api.models import Hosts
from api.session import reading
from api.views import view_hosts

router = APIRouter(prefix="/hosts", tags=["hosts"])


@router.get("", summary="List hosts and their devices")
def list_hosts() -> Hosts:
    """Return every host with its devices and who holds each."""
    with reading() as session:
        return view_hosts(session)
