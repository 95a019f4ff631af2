"""The doctor of a process of the service: whether settings, database, schema, clock, broker and key are in order.

    python -m jobs.doctor

prints a JSON object a line for each thing it looked at: `check`, `verdict` (`ok`, `warn` or `bad`), what was `seen`,
and what `to_do`. `rankzero doctor` runs it, or on a host `python -m worker.doctor`, and shows that to people.
"""

import json
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from importlib import metadata
from pathlib import Path

import structlog
from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from jobs import sealing, wakeups
from jobs.database import Database, now
from jobs.errors import InvalidSettingsError, NoKeyError
from jobs.redaction import redact
from jobs.settings import Settings, get_settings
from jobs.store import schema

CLOCK_WARN_S = 2.0
CLOCK_BAD_S = 60.0
"""Receivers of webhooks refuse what was signed a few minutes ago or ahead, and times that people read make no sense."""
PACKAGES = ("sqlalchemy", "psycopg", "celery", "redis", "fastapi", "torch")


class Verdict(StrEnum):
    """How a check went."""

    OK = "ok"
    WARN = "warn"
    """It works, and not as well as it could, or not for everything."""
    BAD = "bad"
    """Jobs cannot run, or the service cannot start, before this is mended."""


@dataclass(frozen=True)
class Finding:
    """What one check has found, each in a line for people."""

    check: str
    verdict: Verdict
    seen: str
    to_do: str | None = None


def examine() -> Iterator[Finding]:
    """Look at everything that each process of the service needs, one thing after the other."""
    yield _versions()
    try:
        settings = get_settings()
    except InvalidSettingsError as error:
        yield Finding("settings", Verdict.BAD, str(error), "correct the variable; docs/settings.md lists all of them")
        return
    yield from _database(settings)
    yield _broker(settings)
    yield _key(settings)


def tell(findings: Iterator[Finding]) -> None:
    """Print each finding as soon as it is there, with no password in it; what is logged meanwhile is no finding."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    for finding in findings:
        sys.stdout.write(redact(json.dumps(asdict(finding))) + "\n")
        sys.stdout.flush()


def _versions() -> Finding:
    found = [f"{name} {version}" for name in PACKAGES if (version := _version(name)) is not None]
    seen = ", ".join([f"rankzero {_version('rankzero')}", f"Python {platform.python_version()}", *found])
    return Finding("versions", Verdict.OK, seen)


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _database(settings: Settings) -> Sequence[Finding]:
    try:
        url = make_url(settings.database_url)
    except ArgumentError as error:
        return [
            Finding("database", Verdict.BAD, f"RANKZERO_DATABASE_URL: {error}", "write it as docs/settings.md says")
        ]
    name = url.render_as_string(hide_password=True)
    if url.get_backend_name() == "sqlite" and not (url.database and Path(url.database).is_file()):
        # To connect would make it, and the next to come would find an empty one.
        return [Finding("database", Verdict.BAD, f"{name}: no such file", "python -m jobs.database upgrade makes it")]
    try:
        database = Database(settings.database_url)
    except (SQLAlchemyError, ImportError) as error:
        return [Finding("database", Verdict.BAD, f"{name}: {error}", "correct RANKZERO_DATABASE_URL")]
    began = time.monotonic()
    try:
        with database.session_scope(read_only=True) as session:
            asked, clock, answered = datetime.now(UTC), now(session), datetime.now(UTC)
            took_ms = (time.monotonic() - began) * 1000
            told = _schema(*schema.revisions(session), is_behind=schema.is_behind(session))
            ahead_s = (asked + (answered - asked) / 2 - clock).total_seconds()
    except SQLAlchemyError as error:
        to_do = "start it, or correct RANKZERO_DATABASE_URL"
        return [Finding("database", Verdict.BAD, f"{name}: {_first_line(error)}", to_do)]
    finally:
        database.dispose()
    return [Finding("database", Verdict.OK, f"{name} answers in {took_ms:.0f} ms"), told, judge_clock(ahead_s)]


def _schema(applied: str, needed: str, *, is_behind: bool) -> Finding:
    if applied == needed:
        return Finding("schema", Verdict.OK, f"revision {needed}, as this release needs it")
    seen = f"revision {applied}, and this release needs {needed}"
    if is_behind:
        return Finding("schema", Verdict.BAD, seen, "python -m jobs.database upgrade")
    return Finding("schema", Verdict.BAD, seen, "a later release has upgraded it: install that one here")


def judge_clock(ahead_s: float) -> Finding:
    """Judge by how many seconds this machine's clock is ahead of the database's."""
    direction = "ahead of" if ahead_s > 0 else "behind"
    if abs(ahead_s) < CLOCK_WARN_S:
        return Finding("clock", Verdict.OK, f"{abs(ahead_s):.1f} s {direction} the database's")
    verdict = Verdict.WARN if abs(ahead_s) < CLOCK_BAD_S else Verdict.BAD
    return Finding(
        "clock",
        verdict,
        f"{abs(ahead_s):.1f} s {direction} the database's",
        "have NTP (chrony, systemd-timesyncd) set the clock of each machine",
    )


def _broker(settings: Settings) -> Finding:
    # Not by SQLAlchemy's parser: the socket of a broker is a path.
    name = redact(settings.broker_url)
    began = time.monotonic()
    if wakeups.broker_answers():
        return Finding("broker", Verdict.OK, f"{name} answers in {(time.monotonic() - began) * 1000:.0f} ms")
    return Finding(
        "broker",
        Verdict.WARN,
        f"{name} is silent: jobs start up to {settings.tick_s:g} s later",
        "start it, or correct RANKZERO_BROKER_URL",
    )


def _key(settings: Settings) -> Finding:
    if settings.key_file is None:
        return Finding("key", Verdict.WARN, "none, so there are neither secrets nor webhooks", sealing.WAY_OUT)
    try:
        sealing.seal("")
    except NoKeyError as error:
        return Finding("key", Verdict.BAD, str(error))
    return Finding("key", Verdict.OK, f"{settings.key_file} seals secrets, and is this account's alone")


def _first_line(error: SQLAlchemyError) -> str:
    return str(getattr(error, "orig", None) or error).strip().partition("\n")[0]


if __name__ == "__main__":
    tell(examine())
