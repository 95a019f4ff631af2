"""Whether a request comes from this machine, and from a page of it: what `RANKZERO_ACCESS=loopback` goes by."""

import re
from ipaddress import IPv4Address, IPv6Address, ip_address

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Scope

from api import errors

_HERE = r"(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?"
_HOST = re.compile(_HERE, re.IGNORECASE)
_ORIGIN = re.compile(rf"https?://{_HERE}", re.IGNORECASE)
_FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip", "via")
"""What a proxy adds. One on this machine would make everybody's requests come from here."""
WAY_OUT = "the service has to ask for tokens (RANKZERO_ACCESS=tokens)"


def refusal(scope: Scope) -> Response | None:
    """Return the answer to a request that is not certain to be this machine's own; None for one that is.

    A page of another site, opened here, comes from here as well. Its browser says so in Origin, and where the site's
    name has been made to lead here (DNS rebinding), in Host.
    """
    headers = Headers(scope=scope)
    peer = scope.get("client")
    if peer is None or not is_loopback(peer[0]):
        return errors.forbidden(f"only this machine itself is served without a token; for others, {WAY_OUT}")
    if any(name in headers for name in _FORWARDED):
        return errors.forbidden(f"a proxy has passed this on, for whom is not certain; behind a proxy, {WAY_OUT}")
    hosts = headers.getlist("host")
    if len(hosts) != 1 or not _HOST.fullmatch(hosts[0]):
        return errors.misdirected(f"ask localhost, 127.0.0.1 or [::1]; under another name, {WAY_OUT}")
    if not all(_ORIGIN.fullmatch(origin) for origin in headers.getlist("origin")) or _is_part_of_another(headers):
        return errors.forbidden("pages of other sites may not use this service")
    return None


def _is_part_of_another(headers: Headers) -> bool:
    """Whether a browser asks for what is to be a part of another site's page, such as an image; a link is none.

    It may say so in no Origin: a page that has hundreds of event streams loaded as images would hold as many of our
    connections (Fetch Metadata, W3C).
    """
    is_link = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    return headers.get("sec-fetch-site") == "cross-site" and not is_link


def is_loopback(address: str) -> bool:
    """Whether an address reaches its own machine alone; text that is no address does not."""
    try:
        parsed: IPv4Address | IPv6Address = ip_address(address)
    except ValueError:
        return False
    mapped = parsed.ipv4_mapped if isinstance(parsed, IPv6Address) else None
    return (mapped or parsed).is_loopback
