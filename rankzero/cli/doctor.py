"""The command that looks whether all is well with a service: as it answers, and where it runs here, with its parts."""

import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankzero.cli import exits
from rankzero.cli.console import Console
from rankzero.cli.options import Json, Url
from rankzero.cli.output import print_json
from rankzero.cli.tables import size_of
from rankzero.cli.wording import in_words
from rankzero.errors import RankzeroError, RefusedError, UnreachableError

if TYPE_CHECKING:
    from rankzero.connection import Connection

OK, WARN, BAD = "ok", "warn", "bad"
COLOURS = {OK: "green", WARN: "yellow", BAD: "red"}
TIMEOUT_S = 10
CLOCK_WARN_S = 3.0
"""The header that tells the service's time has whole seconds."""
SERVICE_PARTS = ("sqlalchemy", "celery", "alembic")
HOST_PARTS = (*SERVICE_PARTS, "psutil", "pynvml")
"""Packages without which this machine runs no part of a service, and no worker."""
PARTS_TIMEOUT_S = 180
"""To import torch, and for a database that does not answer."""
NTP = "have NTP (chrony, systemd-timesyncd) set the clock of each machine"


@dataclass(frozen=True)
class Finding:
    """What one check has found, as `jobs.doctor` tells of it too."""

    check: str
    verdict: str
    seen: str
    to_do: str | None = None


def add_doctor_command(app: typer.Typer) -> None:
    """Add this command to the application."""
    app.command()(doctor)


def doctor(
    data_dir: Annotated[
        Path | None,
        typer.Option(help="Folder of a `rankzero up` on this machine; else ~/.local/share/rankzero, if it is there."),
    ] = None,
    *,
    as_json: Json = False,
    url: Url = None,
) -> None:
    """Look at a service and at this machine: database, broker, hosts, devices, clocks, disk, versions.

    Each check is a line: ok, warn or bad, what was seen, and what to do. With anything bad the exit code is 1.
    """
    found: list[Finding] = []
    console = Console()
    for place, findings in (("service", examine_service(url)), ("this machine", examine_machine(data_dir))):
        if not as_json:
            console.print(f"[bold]{place}[/]")
        for each in findings:
            found.append(each)
            if not as_json:
                _print(console, each)
    is_well = all(each.verdict != BAD for each in found)
    if as_json:
        print_json({"well": is_well, "checks": [asdict(each) for each in found]})
    raise typer.Exit(exits.OK if is_well else exits.FAILED)


def examine_service(url: str | None) -> Iterator[Finding]:
    """Look at a service from outside, as far as it answers."""
    from rankzero.connection import Connection

    with closing(Connection(url, timeout_s=TIMEOUT_S, patience_s=0)) as connection:
        try:
            yield from _process(connection)
        except UnreachableError as error:
            yield Finding("service", BAD, str(error))
            return
        except RefusedError as error:
            yield Finding("service", BAD, str(error), "name the service with --url or RANKZERO_URL")
            return
        yield from _readiness(connection)
        try:
            yield _login(connection.get("/me"), connection.url)
        except RefusedError as error:
            yield Finding("login", BAD, str(error))
            return
        except UnreachableError as error:
            yield Finding("login", BAD, str(error), "see what is said of the database")
            return
        yield from _hosts(connection)


def examine_machine(data_dir: Path | None) -> Iterator[Finding]:
    """Look at the parts of a service on this machine, in a process that may import them."""
    missing = [name for name in SERVICE_PARTS if importlib.util.find_spec(name) is None]
    if missing:
        yield Finding("parts", OK, f"the client alone ({', '.join(missing)} not installed)")
        return
    settings = _settings(data_dir)
    if settings is None:
        seen = "no service is set up here: RANKZERO_DATABASE_URL is not set, and `rankzero up` was never run"
        yield Finding("parts", OK, seen)
        return
    is_host = all(importlib.util.find_spec(name) is not None for name in HOST_PARTS)
    module = "worker.doctor" if is_host else "jobs.doctor"
    yield from _told_by([sys.executable, "-m", module], os.environ | settings)


def _process(connection: "Connection") -> Iterator[Finding]:
    from rankzero.connection import no_service

    began = time.monotonic()
    answer = connection.answer(connection.build("/healthz"))
    answered_at, took_s = datetime.now(UTC), time.monotonic() - began
    if not _is_ours(answer.content):
        raise no_service(connection.url, answer)
    theirs, ours = str(connection.get("/openapi.json")["info"]["version"]), version("rankzero")
    seen = f"{connection.url} answers in {took_s * 1000:.0f} ms, version {theirs}"
    if theirs == ours:
        yield Finding("service", OK, seen)
    else:
        yield Finding("service", WARN, f"{seen}; this command is {ours}", f"pip install rankzero=={theirs}")
    date = answer.headers.get("Date")
    if date is not None:
        yield _clock((answered_at - parsedate_to_datetime(date)).total_seconds() - took_s / 2)


def _is_ours(health: bytes) -> bool:
    try:
        return bool(json.loads(health) == {"status": "alive"})
    except ValueError:
        return False


def _clock(ahead_s: float) -> Finding:
    direction = "ahead of" if ahead_s > 0 else "behind"
    seen = f"this machine's is {abs(ahead_s):.0f} s {direction} the service's"
    return Finding("clock", OK, seen) if abs(ahead_s) < CLOCK_WARN_S else Finding("clock", WARN, seen, NTP)


def _readiness(connection: "Connection") -> Iterator[Finding]:
    try:
        ready = connection.get("/readyz")
    except RankzeroError as error:
        yield Finding(
            "database", BAD, str(error), None if "run:" in str(error) else "see that it runs, and can be reached"
        )
        return
    yield Finding("database", OK, "answers the service, with the schema that it needs")
    if ready["broker"] == "answers":
        yield Finding("broker", OK, "answers the service")
    else:
        yield Finding("broker", WARN, "silent: jobs start up to a worker's tick later", "see that it runs")


def _login(me: Mapping[str, Any], url: str) -> Finding:
    if me["access"] == "loopback":
        return Finding("login", OK, f"{url} asks for no token, and serves its own machine alone")
    return Finding("login", OK, f"{me['user']}, {me['role']}")


def _hosts(connection: "Connection") -> Iterator[Finding]:
    hosts = connection.get("/hosts")["items"]
    if not hosts:
        yield Finding("hosts", BAD, "none has registered: no job can run", "start `python -m worker` on each GPU host")
    for host in hosts:
        yield _host(host)


def _host(host: Mapping[str, Any]) -> Finding:
    check = f"host {host['name']}"
    if host["closed"] is not None:
        to_do = f"rankzero undrain {host['name']} takes it back" if host["drained_at"] else "look at its worker's log"
        return Finding(check, WARN, f"gets no jobs: it is {host['closed']}", to_do)
    devices = host["devices"]
    withheld = [device["name"] for device in devices if device["quarantined_at"] is not None]
    heard_s = (datetime.now(UTC) - datetime.fromisoformat(host["heartbeat_at"])).total_seconds()
    free = "" if host["free_bytes"] is None else f", {size_of(host['free_bytes'])} free"
    seen = f"takes jobs: {len(devices) - len(withheld)} devices{free}, heard {in_words(heard_s)} ago"
    if not withheld:
        return Finding(check, OK, seen)
    to_do = f"look at the GPU, then: rankzero hosts release {host['name']} {withheld[0]}"
    return Finding(check, WARN, f"{seen}; in quarantine: {', '.join(withheld)}", to_do)


def _settings(data_dir: Path | None) -> dict[str, str] | None:
    """The settings of the service that runs on this machine: those of the environment, or those of `rankzero up`."""
    from rankzero.embedded import DATABASE_FILE, default_data_dir, settings_of, whole_path

    if data_dir is None and os.environ.get("RANKZERO_DATABASE_URL"):
        return {}
    folder = whole_path(data_dir or default_data_dir())
    return settings_of(folder) if data_dir is not None or (folder / DATABASE_FILE).exists() else None


def _told_by(command: list[str], environment: Mapping[str, str]) -> Iterator[Finding]:
    """What a process tells, a JSON object a line."""
    try:
        done = subprocess.run(
            command, env=dict(environment), capture_output=True, text=True, check=False, timeout=PARTS_TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        yield Finding("parts", BAD, f"{' '.join(command[1:])} is not done after {PARTS_TIMEOUT_S} s", "run it by hand")
        return
    for line in done.stdout.splitlines():
        yield Finding(**json.loads(line))
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        yield Finding(
            "parts", BAD, f"{' '.join(command[1:])} broke off: {last}", "reinstall: pip install 'rankzero[worker]'"
        )


def _print(console: Console, finding: Finding) -> None:
    verdict = f"[{COLOURS[finding.verdict]}]{finding.verdict:<4}[/]"
    console.print(verdict, end="  ", highlight=False)
    text = finding.seen if finding.to_do is None else f"{finding.seen}; {finding.to_do}"
    console.print(f"{finding.check:<16}  {text}", highlight=False, markup=False, soft_wrap=True)
