"""Addresses that the service sends to because a user named them: the public ones, and those that its operator allows.

Whoever may register a webhook may otherwise have the service talk to what only its own hosts reach: the metadata of a
cloud, a database, a router.
"""

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")
"""All of IPv6 that is given to anybody's machines. IPv4 in another dress (mapped, NAT64) is not in it."""
_TUNNELS = (ipaddress.IPv6Network("2002::/16"), ipaddress.IPv6Network("2001::/32"))
"""6to4 and Teredo, which lead to an IPv4 address within them."""
_PROTOCOLS = ipaddress.IPv4Network("192.0.0.0/24")
"""Set aside for protocols; the ipaddress of Python before 3.11.9 takes the most of it for public."""
_HOST = re.compile(r"[a-z0-9_]([a-z0-9_.-]{0,252})")


@dataclass(frozen=True)
class Allowed:
    """What is sent to although it is not public."""

    hosts: frozenset[str] = frozenset()
    """Names, in lower case, whose addresses are not looked at."""
    networks: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...] = ()

    def refuses(self, host: str, address: Address) -> bool:
        """Whether nothing is sent to this address, to which the host of a URL leads."""
        if is_public(address) or host.lower().rstrip(".") in self.hosts:
            return False
        return not any(address in network for network in self.networks)


@cache
def parse_allowed(text: str | None) -> Allowed:
    """Read a list of host names, addresses and networks, with commas between. Raises ValueError for what is none."""
    hosts, networks = set(), []
    for each in (part.strip().lower() for part in (text or "").split(",")):
        try:
            networks.append(ipaddress.ip_network(each))
        except ValueError as error:
            if "/" in each or (each and not _HOST.fullmatch(each)):
                raise ValueError(f"{each!r} is neither a host, such as hooks.lan, nor a network: {error}") from error
            hosts.add(each)
    return Allowed(frozenset(hosts - {""}), tuple(networks))


def is_public(address: Address) -> bool:
    """Whether an address is that of a machine on the internet, reached by itself and not through another form of it."""
    if isinstance(address, ipaddress.IPv4Address):
        return address.is_global and not address.is_multicast and address not in _PROTOCOLS
    return address in _GLOBAL_UNICAST and address.is_global and not any(address in tunnel for tunnel in _TUNNELS)


def refused(host: str, addresses: Sequence[Address], allowed: Allowed) -> str | None:
    """Return why nothing is sent to a host with these addresses, and the way out; None where it is.

    One address that is refused is enough: a name with a public and a private one is how such a guard is got round.
    """
    found = next((address for address in addresses if allowed.refuses(host, address)), None)
    if found is None:
        return None
    named = f"{found}" if host.strip("[]") == str(found) else f"{host} has the address {found}, which"
    return f"{named} is not public; an operator may allow it in RANKZERO_WEBHOOK_ALLOW"
