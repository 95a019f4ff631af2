"""One host, and its devices one by one: showing them, and taking a device out of use."""

from fastapi import APIRouter

from api.access import Admin, Viewer
from api.fleet import Device, Host, Quarantine
from api.host_views import view_device, view_host
from api.routes.hosts import DeviceName, Name
from api.session import reading, writing
from jobs import wakeups
from jobs.store import audit, maintenance

router = APIRouter(prefix="/hosts/{name}", tags=["hosts"])


@router.get("", summary="Show a host")
def get_host(name: Name, _: Viewer) -> Host:
    """Return one host with its devices and who holds each."""
    with reading() as session:
        return view_host(session, name)


@router.get("/devices/{device}", summary="Show a device")
def get_device(name: Name, device: DeviceName, _: Viewer) -> Device:
    """Return one device of a host, and who holds it."""
    with reading() as session:
        return view_device(session, name, device)


@router.post("/devices/{device}/quarantine", summary="Take a device out of use")
def quarantine_device(name: Name, device: DeviceName, quarantine: Quarantine, by: Admin) -> Host:
    """Hand a device out no more until it is released, and return its host; a run that has it goes on."""
    with writing() as session:
        audit.record(session, by, "quarantine_device", f"hosts/{name}/devices/{device}", reason=quarantine.reason)
        maintenance.quarantine(session, name, device, reason=quarantine.reason)
        host = view_host(session, name)
    wakeups.wake_planner()  # those that wait for it are told
    return host
