"""Hosts and their devices: showing them, and what an operator does with them."""

from typing import Annotated

from fastapi import APIRouter, Body, Path, Query

from api.access import Admin, Viewer
from api.errors import CONFLICT
from api.fields import SPARSE, SparseAnswer, picked
from api.fleet import Drain, Host, Hosts
from api.host_views import view_host, view_hosts
from api.queries import HostQuery
from api.session import reading, writing
from jobs import wakeups
from jobs.store import audit, maintenance

router = APIRouter(prefix="/hosts", tags=["hosts"])

Name = Annotated[str, Path(max_length=255, pattern=r"^[^\x00]*$", description="Name of the host.")]
DeviceName = Annotated[str, Path(max_length=32, pattern=r"^[^\x00]*$", description="Name of the device: `cuda:0`.")]


@router.get("", summary="List hosts and their devices", response_model=Hosts, responses=SPARSE)
def list_hosts(query: Annotated[HostQuery, Query()], _: Viewer) -> Hosts | SparseAnswer:
    """Return every host with its devices and who holds each."""
    with reading() as session:
        found = sorted(view_hosts(session), key=lambda host: host.name, reverse=query.sort == "-name")
    return picked(Hosts(items=found), query.fields)


@router.post("/{name}/drain", summary="Drain a host")
def drain_host(name: Name, by: Admin, drain: Annotated[Drain, Body()] = Drain()) -> Host:
    """Give a host no new jobs until it is taken back, and return it. Its running jobs go on, or stop with `evict`.

    A host that is drained already takes the new note, and `evict` may follow later.
    """
    with writing() as session:
        audit.record(session, by, "drain_host", f"hosts/{name}", **drain.model_dump())
        maintenance.drain(session, name, note=drain.note, evict=drain.evict)
        host = view_host(session, name)
    wakeups.wake_planner()  # those that wait are told
    return host


@router.post("/{name}/undrain", summary="Take a drained host back")
def undrain_host(name: Name, by: Admin) -> Host:
    """Let a host have jobs again, and return it; one that is not drained stays as it is."""
    with writing() as session:
        audit.record(session, by, "undrain_host", f"hosts/{name}")
        maintenance.take_back(session, name)
        host = view_host(session, name)
    wakeups.wake_planner()
    return host


@router.delete("/{name}", status_code=204, summary="Remove a host", responses=CONFLICT)
def remove_host(name: Name, by: Admin) -> None:
    """Forget a host that is gone for good; a worker that registers under its name brings it back.

    Refused while its worker reports, or a run there has not ended.
    """
    with writing() as session:
        audit.record(session, by, "remove_host", f"hosts/{name}")
        maintenance.remove(session, name)
    wakeups.wake_planner()  # those that wait for its devices are told


@router.post("/{name}/devices/{device}/release", summary="Release a quarantined device")
def release_device(name: Name, device: DeviceName, by: Admin) -> Host:
    """Hand a device out again and return its host; one that is not in quarantine has its losses forgotten."""
    with writing() as session:
        audit.record(session, by, "release_device", f"hosts/{name}/devices/{device}")
        maintenance.release(session, name, device)
        host = view_host(session, name)
    wakeups.wake_planner()
    return host
