"""Tokens that this machine's user has stored, one for each service, and where a token may be sent.

They are in `~/.config/rankzero/credentials.toml` (or below `XDG_CONFIG_HOME`), which nobody else may read:

    ["https://rankzero.example.org"]
    token = "rz_…"
    insecure = true         # only where it was stored so

Nothing here, and nothing that uses it, shows a token in a message or a `repr`.
"""

import fcntl
import json
import os
import re
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from rankzero.errors import UsageError

TOKEN_VARIABLE = "RANKZERO_TOKEN"  # noqa: S105  # a name
INSECURE_VARIABLE = "RANKZERO_INSECURE"
_PORTS = {"http": 80, "https": 443}
_SENDABLE = re.compile(r"[\x21-\x7e]+")
"""What a header can carry. The service says what is a token: another may be in front of it."""


@dataclass(frozen=True)
class Credential:
    """A token, and whether it may travel unencrypted."""

    token: str = field(repr=False)
    insecure: bool = False


def path() -> Path:
    """Return where the tokens are stored, whether or not any is. Raises UsageError for an account that has no home."""
    file = _file()
    if file is None:
        raise UsageError("this account has no home directory to store a token in; name a folder: XDG_CONFIG_HOME")
    return file


def find(url: str, *, token: str | None = None, insecure: bool | None = None) -> Credential | None:
    """Return the token for a service: the one given, else that of RANKZERO_TOKEN, else the stored one; None for none.

    It may travel unencrypted if `insecure` says so, or else RANKZERO_INSECURE=1, or what was said when it was stored.
    Raises UsageError for a token that is none, and for one that it is not safe to send there.
    """
    given = token or os.environ.get(TOKEN_VARIABLE)
    found = Credential(given) if given else stored(url)
    if found is None:
        return None
    if insecure is None:
        insecure = found.insecure or os.environ.get(INSECURE_VARIABLE, "") not in ("", "0")
    _check_sendable(url, found.token, insecure=insecure)
    return Credential(found.token, insecure)


def stored(url: str) -> Credential | None:
    """Return what is stored for a service. Raises UsageError for a file that others may read, or that is damaged."""
    entry = _read().get(service_of(url))
    return None if entry is None else Credential(str(entry["token"]), bool(entry.get("insecure", False)))


def services() -> list[str]:
    """Return the URLs of the services that a token is stored for."""
    return sorted(_read())


def store(url: str, token: str, *, insecure: bool = False) -> Path:
    """Store a token for a service, in place of the one there was, and return the file.

    Raises UsageError as `find` does.
    """
    _check_sendable(url, token, insecure=insecure)
    with _held() as entries:
        entries[service_of(url)] = {"token": token} | ({"insecure": True} if insecure else {})
    return path()


def forget(url: str) -> bool:
    """Forget the token that is stored for a service; return whether there was one."""
    if service_of(url) not in _read():
        return False
    with _held() as entries:
        return entries.pop(service_of(url), None) is not None


def service_of(url: str) -> str:
    """Return the one form of all the ways to write a service's URL. Raises UsageError."""
    parts = _split(url)
    port = "" if parts.port in (None, _PORTS[parts.scheme]) else f":{parts.port}"
    host = parts.hostname or ""
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{port}{parts.path.rstrip('/')}"


def is_loopback(url: str) -> bool:
    """Whether what is sent there stays on this machine."""
    host = _split(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise UsageError(f"{url!r} is no URL of a service: {error}") from error
    if parts.scheme not in _PORTS or not parts.hostname:
        raise UsageError(f"{url!r} is no URL of a service: write it as http://HOST:PORT or https://HOST")
    if parts.username is not None or parts.password is not None:
        raise UsageError(f"the URL of {parts.hostname} has a user name or password in it; the service takes tokens")
    return parts


def _check_sendable(url: str, token: str, *, insecure: bool) -> None:
    if not _SENDABLE.fullmatch(token):
        raise UsageError("the token has characters in it that no token has; is there a space or a line break?")
    if _split(url).scheme == "http" and not is_loopback(url) and not insecure:
        raise UsageError(
            f"a token would travel unencrypted to {service_of(url)}: name the service by https, or, in a network that "
            f"you trust, say so with {INSECURE_VARIABLE}=1 or Client(…, insecure=True)"
        )


def _file() -> Path | None:
    folder = os.environ.get("XDG_CONFIG_HOME")
    try:
        return (Path(folder) if folder else Path.home() / ".config") / "rankzero" / "credentials.toml"
    except RuntimeError:  # an account with no home, as in a container that runs under a bare number
        return None


def _read() -> dict[str, Mapping[str, Any]]:
    file = _file()
    if file is None:
        return {}
    try:
        with file.open("rb") as content:
            if os.fstat(content.fileno()).st_mode & 0o077:
                raise UsageError(f"others may read the tokens in {file}: chmod 600 {file}")
            entries = tomllib.load(content)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return {}  # also in a home that is somebody else's: a token there is none of this account's
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} is damaged ({error}); remove it and log in again") from error
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from error
    if not all(isinstance(each, dict) and isinstance(each.get("token"), str) for each in entries.values()):
        raise UsageError(f"{file} is damaged: an entry has no token; remove it and log in again")
    return entries


@contextmanager
def _held() -> Iterator[dict[str, Mapping[str, Any]]]:
    """The entries, to be changed: two processes that do so at once wait for one another."""
    folder = path().parent
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            entries = _read()
            yield entries
            _write(entries)
        finally:
            os.close(lock)
    except OSError as error:
        raise UsageError(f"no token can be stored in {folder}: {error.strerror}") from error


def _write(entries: Mapping[str, Mapping[str, Any]]) -> None:
    # JSON's strings, true and false are TOML's too, where they are printable ASCII, as URLs and tokens are.
    lines = []
    for service, entry in sorted(entries.items()):
        lines += [f"[{json.dumps(service)}]", *(f"{name} = {json.dumps(value)}" for name, value in entry.items()), ""]
    descriptor, temporary = tempfile.mkstemp(dir=path().parent)  # which nobody else may read, from the beginning
    try:
        with os.fdopen(descriptor, "w") as content:
            content.write("\n".join(lines))
            content.flush()
            os.fsync(content.fileno())
        Path(temporary).replace(path())
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
