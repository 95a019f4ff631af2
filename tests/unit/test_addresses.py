"""Addresses: which are public, and what an operator's list lets through besides."""

from ipaddress import ip_address

import pytest

from jobs.addresses import Allowed, is_public, parse_allowed, refused

NOT_PUBLIC = [
    "0.0.0.0",
    "10.1.2.3",
    "100.64.0.1",  # carrier-grade NAT
    "127.0.0.1",
    "127.255.255.254",
    "169.254.169.254",  # where clouds keep their metadata
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.8",
    "192.0.2.1",
    "192.168.0.1",
    "198.18.0.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::7f00:1",  # the deprecated form of an IPv4 address
    "::ffff:127.0.0.1",
    "::ffff:93.184.216.34",
    "64:ff9b::7f00:1",  # NAT64
    "64:ff9b:1::a00:1",
    "100::1",
    "2001::1",  # Teredo
    "2001:db8::1",
    "2002:7f00:1::1",  # 6to4
    "2002:5db8:d822::1",
    "fc00::1",
    "fd12:3456:789a::1",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
]


@pytest.mark.parametrize("text", NOT_PUBLIC)
def test_an_address_that_is_not_public_is_refused_with_the_way_out(text: str) -> None:
    address = ip_address(text)
    assert not is_public(address)
    reason = refused("hooks.example", [address], Allowed())
    assert reason == (
        f"hooks.example has the address {address}, which is not public; an operator may allow it in "
        "RANKZERO_WEBHOOK_ALLOW"
    )


@pytest.mark.parametrize("text", ["1.1.1.1", "93.184.216.34", "172.32.0.1", "2606:4700:4700::1111", "2a00:1450::1"])
def test_a_public_address_is_not_refused(text: str) -> None:
    assert refused("hooks.example", [ip_address(text)], Allowed()) is None


def test_one_private_address_among_public_ones_is_enough_to_refuse() -> None:
    reason = refused("hooks.example", [ip_address("1.1.1.1"), ip_address("10.0.0.1")], Allowed())
    assert reason is not None
    assert "10.0.0.1" in reason


def test_an_address_that_stands_for_itself_is_named_once() -> None:
    reason = refused("127.0.0.1", [ip_address("127.0.0.1")], Allowed())
    assert reason is not None
    assert reason.startswith("127.0.0.1 is not public")


@pytest.mark.parametrize(
    ("allowed", "host", "address", "passes"),
    [
        ("10.0.0.0/8", "hooks.lan", "10.1.2.3", True),
        ("10.0.0.0/8", "hooks.lan", "192.168.0.1", False),
        ("127.0.0.1", "localhost", "127.0.0.1", True),
        ("127.0.0.1", "localhost", "127.0.0.2", False),
        ("127.0.0.0/8", "evil.example", "::ffff:127.0.0.1", False),  # a form of an address is not the address
        ("hooks.lan", "hooks.lan", "10.1.2.3", True),
        ("hooks.lan", "HOOKS.LAN.", "10.1.2.3", True),
        ("hooks.lan", "evil.hooks.lan", "10.1.2.3", False),
        (" hooks.lan , fd00::/8 ", "other.lan", "fd00::1", True),
        ("", "hooks.lan", "10.1.2.3", False),
    ],
)
def test_an_operator_allows_hosts_addresses_and_networks(allowed: str, host: str, address: str, passes: bool) -> None:
    assert (refused(host, [ip_address(address)], parse_allowed(allowed)) is None) is passes


@pytest.mark.parametrize(
    "text", ["10.0.0.0/33", "10.0.0.1/8", "http://hooks.lan", "hooks.lan:8080", "*", "a b", "::1/x"]
)
def test_what_is_neither_a_host_nor_a_network_is_an_error_that_names_it(text: str) -> None:
    with pytest.raises(ValueError, match=r"is neither a host, such as hooks\.lan, nor a network"):
        parse_allowed(f"hooks.lan,{text}")
