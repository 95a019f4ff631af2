"""The commands about the fleet: hosts and their devices, quotas."""

from collections.abc import Callable, Sequence
from typing import Annotated, TypeVar

import typer
from pydantic import BaseModel
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from rankzero.cli.options import Json, Url
from rankzero.cli.output import print_json
from rankzero.client import Client
from rankzero.fleet import Host, HostDevice, Quotas

Found = TypeVar("Found", bound=BaseModel | Sequence[BaseModel])
HostName = Annotated[str, typer.Argument(metavar="HOST", help="Name of the host.")]
Kind = Annotated[str, typer.Argument(metavar="user|label", help="Whose quota it is.")]
Subject = Annotated[
    str,
    typer.Argument(
        metavar="SUBJECT", help="The user's name, `*` for each user with no quota of its own, or key=value."
    ),
]

hosts = typer.Typer(help="Show hosts and their devices; drain a host, take it back, remove it, release a device.")
quotas = typer.Typer(help="Show quotas and what is used; set and delete quotas.")


def add_fleet_commands(app: typer.Typer) -> None:
    """Add these commands to the application."""
    app.add_typer(hosts, name="hosts")
    app.add_typer(quotas, name="quotas")


@hosts.callback(invoke_without_command=True)
def list_hosts(context: typer.Context, *, as_json: Json = False, url: Url = None) -> None:
    """Show hosts and their devices, or with a command act on one."""
    if context.invoked_subcommand is None:
        _list(Client.hosts, _print_hosts, as_json=as_json, url=url)


@hosts.command()
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
    with Client(url) as client:
        _tell(client.drain(host, note=note, evict=evict), as_json=as_json)


@hosts.command()
def undrain(host: HostName, *, as_json: Json = False, url: Url = None) -> None:
    """Take a drained host back."""
    with Client(url) as client:
        _tell(client.undrain(host), as_json=as_json)


@hosts.command()
def remove(host: HostName, *, url: Url = None) -> None:
    """Forget a host that is gone for good; a worker that registers under its name brings it back."""
    with Client(url) as client:
        client.remove_host(host)
    print(f"{host} is listed no more")


@hosts.command()
def release(
    host: HostName,
    device: Annotated[str, typer.Argument(help="Name of the device, such as cuda:1.")],
    *,
    as_json: Json = False,
    url: Url = None,
) -> None:
    """Hand out a device again that was taken away after attempts were lost on it."""
    with Client(url) as client:
        held_back = [each.name for each in _devices_of(client, host) if each.quarantined_at is not None]
        released = client.release(host, device)
    if as_json:
        print_json(released)
    else:
        print(f"{device} {'is handed out again' if device in held_back else 'was not in quarantine'}")


@quotas.callback(invoke_without_command=True)
def list_quotas(context: typer.Context, *, as_json: Json = False, url: Url = None) -> None:
    """Show quotas and what is used, or with a command change one."""
    if context.invoked_subcommand is None:
        _list(Client.quotas, _print_quotas, as_json=as_json, url=url)


@quotas.command("set")
def set_quota(
    kind: Kind,
    subject: Subject,
    max_devices: Annotated[
        int | None, typer.Option(min=0, help="Most devices held at once; without it there is no limit.")
    ] = None,
    share: Annotated[float, typer.Option(help="Weight in the fair share; 1 is everybody's.")] = 1,
    *,
    as_json: Json = False,
    url: Url = None,
) -> None:
    """Set the quota of a user or a label, in place of the one it had."""
    with Client(url) as client:
        quota = client.set_quota(kind, subject, max_devices=max_devices, share=share)
    if as_json:
        print_json(quota)
    else:
        print(f"{quota.kind} {quota.subject}: {_limit(quota.max_devices)}, share {quota.share:g}")


@quotas.command("delete")
def delete_quota(kind: Kind, subject: Subject, *, url: Url = None) -> None:
    """Take the quota of a user or a label away."""
    with Client(url) as client:
        client.delete_quota(kind, subject)
    print(f"{kind} {subject} has no quota")


def _list(
    read: Callable[[Client], Found], show: Callable[[Console, Found], None], *, as_json: bool, url: str | None
) -> None:
    with Client(url) as client:
        found = read(client)
    if as_json:
        print_json(found)
    else:
        show(Console(), found)


def _print_hosts(console: Console, found: Sequence[Host]) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("HOST", "DEVICE", "MODEL", "JOB", "NOTE"):
        table.add_column(heading, overflow="fold")
    for host in found:
        table.add_row(escape(host.name), "", "", "", escape(host.closed or ""))
        for device in host.devices:
            model = "simulated" if device.simulated else device.model or ""
            job = "" if device.held_by is None else str(device.held_by["job_id"])
            table.add_row("", device.name, escape(model), job, escape(_trouble_of(device)))
    console.print(table if found else "no host has registered; `rankzero up` starts one")


def _trouble_of(device: HostDevice) -> str:
    if device.quarantined_at is None:
        return ""
    return f"not handed out: {device.quarantine_reason or 'in quarantine'}"


def _devices_of(client: Client, host: str) -> Sequence[HostDevice]:
    return [device for each in client.hosts() if each.name == host for device in each.devices]


def _tell(host: Host, *, as_json: bool) -> None:
    if as_json:
        print_json(host)
        return
    held = sorted({device.held_by["job_id"] for device in host.devices if device.held_by is not None})
    jobs = f"; jobs there: {', '.join(map(str, held))}" if held else ""
    print(f"{host.name} {f'is {host.closed}' if host.closed else 'takes jobs'}{jobs}")


def _print_quotas(console: Console, found: Quotas) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("KIND", "SUBJECT", "LIMIT", "SHARE", "HELD", "USED LATELY"):
        table.add_column(heading, overflow="fold")
    for quota in found.items:
        use = ("", "") if quota.use is None else (str(quota.use.held_devices), _hours(quota.use.recent_device_s))
        table.add_row(quota.kind, escape(quota.subject), _limit(quota.max_devices), f"{quota.share:g}", *use)
    limited = {quota.subject for quota in found.items if quota.kind == "user"}
    for user in found.users:
        if user.user not in limited:
            name = escape(user.user) if user.user is not None else "(nobody)"
            table.add_row("user", name, "", "", str(user.held_devices), _hours(user.recent_device_s))
    console.print(table)


def _limit(max_devices: int | None) -> str:
    return "no limit" if max_devices is None else f"{max_devices} device{'' if max_devices == 1 else 's'}"


def _hours(device_s: float) -> str:
    return f"{device_s / 3600:.1f} device-hours"
