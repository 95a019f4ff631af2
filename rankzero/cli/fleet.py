"""The commands about hosts and their devices."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from rankzero.cli.console import Console
from rankzero.cli.options import HostName, Json, Url, connect, leads_on
from rankzero.cli.output import print_answer, print_found
from rankzero.cli.tables import table

if TYPE_CHECKING:
    from rankzero.client import Client
    from rankzero.fleet import Host, HostDevice

DeviceName = Annotated[str, typer.Argument(metavar="DEVICE", help="Name of the device, such as cuda:1.")]

hosts = typer.Typer(help="Show hosts and their devices; take a device out of use, hand it out again, remove a host.")


def add_fleet_commands(app: typer.Typer) -> None:
    """Add these commands to the application."""
    app.add_typer(hosts, name="hosts")
    for command in (drain, undrain):
        app.command()(command)


@hosts.callback(invoke_without_command=True)
def list_hosts(context: typer.Context, *, as_json: Json = False, url: Url = None) -> None:
    """Show hosts and their devices, or with a command act on one."""
    if leads_on(context):
        return
    with connect(url) as client:
        print_found(client.hosts(), _print_hosts, as_json=as_json)


def drain(
    host: HostName,
    note: Annotated[str | None, typer.Option(help="Why, for those whose jobs wait for it.")] = None,
    evict: Annotated[
        bool, typer.Option("--evict", help="Stop its jobs too, with a checkpoint, and queue them again.")
    ] = False,
    *,
    as_json: Json = False,
    url: Url = None,
) -> None:
    """Give a host no new jobs until it is taken back."""
    with connect(url) as client:
        _tell(client.drain(host, note=note, evict=evict), as_json=as_json)


def undrain(host: HostName, *, as_json: Json = False, url: Url = None) -> None:
    """Take a drained host back."""
    with connect(url) as client:
        _tell(client.undrain(host), as_json=as_json)


@hosts.command()
def remove(host: HostName, *, as_json: Json = False, url: Url = None) -> None:
    """Forget a host that is gone for good; a worker that registers under its name brings it back."""
    with connect(url) as client:
        client.remove_host(host)
    print_answer({"removed": host}, f"{host} is listed no more", as_json=as_json)


@hosts.command()
def quarantine(
    host: HostName,
    device: DeviceName,
    reason: Annotated[str, typer.Option(help="Why, for those whose jobs wait for it.")],
    *,
    as_json: Json = False,
    url: Url = None,
) -> None:
    """Hand out a device no more until it is released; a run that has it goes on."""
    with connect(url) as client:
        found = client.quarantine(host, device, reason=reason)
    way_back = f"rankzero hosts release {host} {device} hands it out again"
    print_answer(found, f"{device} is handed out no more; {way_back}", as_json=as_json)


@hosts.command()
def release(host: HostName, device: DeviceName, *, as_json: Json = False, url: Url = None) -> None:
    """Hand out a device again that was taken out of use."""
    with connect(url) as client:
        held_back = [each.name for each in _devices_of(client, host) if each.quarantined_at is not None]
        released = client.release(host, device)
    what = "is handed out again" if device in held_back else "was not in quarantine"
    print_answer(released, f"{device} {what}", as_json=as_json)


def _print_hosts(console: Console, found: "Sequence[Host]") -> None:
    listed = table("HOST", "DEVICE", "MODEL", "JOB", "NOTE")
    for host in found:
        listed.add_row(escape(host.name), "", "", "", escape(host.closed or ""))
        for device in host.devices:
            model = "simulated" if device.simulated else device.model or ""
            job = "" if device.held_by is None else str(device.held_by["job_id"])
            listed.add_row("", device.name, escape(model), job, escape(_trouble_of(device)))
    console.print(listed if found else "no host has registered; `rankzero up` starts one")


def _trouble_of(device: "HostDevice") -> str:
    if device.quarantined_at is None:
        return ""
    return f"not handed out: {device.quarantine_reason or 'in quarantine'}"


def _devices_of(client: "Client", host: str) -> "Sequence[HostDevice]":
    return [device for each in client.hosts() if each.name == host for device in each.devices]


def _tell(host: "Host", *, as_json: bool) -> None:
    held = sorted({device.held_by["job_id"] for device in host.devices if device.held_by is not None})
    jobs = f"; jobs there: {', '.join(map(str, held))}" if held else ""
    print_answer(host, f"{host.name} {f'is {host.closed}' if host.closed else 'takes jobs'}{jobs}", as_json=as_json)
