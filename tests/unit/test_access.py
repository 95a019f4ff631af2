"""Who may do what: every route says so, and the gate knows this machine from others."""

from collections.abc import Iterator

import pytest
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute, RouteContext, iter_route_contexts
from starlette.types import Scope

from api import gate, loopback
from api.access import Requires
from api.app import create_app
from api.methods import no_such_method
from jobs.access import LOCAL, Principal, Role

OF_VIEWERS = {"/jobs/plan", "/tokens", "/tokens/{token_id}"}
"""Paths at which who may only look does more: to plan stores nothing, and tokens are one's own."""
ALICE = Principal(user="alice", role=Role.SUBMITTER, token_id=1)


def routes() -> list[RouteContext]:
    return list(iter_route_contexts(create_app().routes))


def declared(route: RouteContext) -> list[Role]:
    """The roles that a route asks for."""

    def of(dependant: Dependant) -> Iterator[Role]:
        if isinstance(dependant.call, Requires):
            yield dependant.call.role
        for inner in dependant.dependencies:
            yield from of(inner)

    return list(of(route.original_route.dependant)) if isinstance(route.original_route, APIRoute) else []


def test_every_route_declares_one_role_or_is_open_to_all() -> None:
    assert not [route.path for route in routes() if len(declared(route)) != 1 and not gate.is_open(route.path or "")]


def test_no_route_is_both_open_and_asks_for_a_role() -> None:
    assert not [route.path for route in routes() if gate.is_open(route.path or "") and declared(route)]


def test_whoever_may_only_look_changes_nothing_but_their_tokens() -> None:
    taken = [route for route in routes() if route.endpoint is not no_such_method]
    changing = [route for route in taken if not (route.methods or set()) <= {"GET", "HEAD"}]
    assert len(changing) > 10
    assert {route.path for route in changing if Role.VIEWER in declared(route)} == OF_VIEWERS


def test_each_role_may_do_what_the_lesser_ones_may() -> None:
    assert [[role.includes(other) for other in Role] for role in Role] == [
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]
    assert Role.ADMIN.within(Role.VIEWER) is Role.VIEWER
    assert Role.VIEWER.within(Role.ADMIN) is Role.VIEWER


@pytest.mark.parametrize(
    ("principal", "owner", "owns"),
    [
        (ALICE, "alice", True),
        (ALICE, "bob", False),
        (ALICE, "Alice", False),
        (ALICE, None, False),
        (LOCAL, "alice", True),
        (LOCAL, None, True),
        (Principal(user=None, role=Role.SUBMITTER), None, False),
    ],
)
def test_a_submitter_owns_what_bears_their_name_and_an_admin_all(
    principal: Principal, owner: str | None, owns: bool
) -> None:
    assert principal.owns(owner) is owns


def scope(peer: str | None = "127.0.0.1", **headers: str) -> Scope:
    """A request; of a header given as `a|b` there are two."""
    sent = {"host": "127.0.0.1:8000"} | headers
    pairs = [(name, value) for name, values in sent.items() for value in values.split("|") if values]
    return {
        "type": "http",
        "client": None if peer is None else (peer, 40000),
        "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in pairs],
    }


@pytest.mark.parametrize("peer", ["127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"])
@pytest.mark.parametrize("host", ["localhost", "LocalHost:8000", "127.0.0.1:1", "[::1]:8000", "[::1]"])
def test_what_this_machine_asks_is_served(peer: str, host: str) -> None:
    assert loopback.refusal(scope(peer, host=host)) is None
    assert loopback.refusal(scope(peer, host=host, origin=f"http://{host}")) is None


@pytest.mark.parametrize("peer", [None, "10.0.0.2", "::", "fe80::1", "::ffff:10.0.0.2", "testclient", "", "0.0.0.0"])
def test_what_another_machine_asks_or_an_unknown_one_is_refused(peer: str | None) -> None:
    refusal = loopback.refusal(scope(peer))
    assert refusal is not None
    assert refusal.status_code == 403


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8000",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "localhost:8000@evil.example",
        "localhost:",
        "localhost:80\n",
        "localhost.",
        "::1",
        "0.0.0.0:8000",
        "127.0.0.1|evil.example",
        "",
    ],
)
def test_a_name_that_was_made_to_lead_here_is_no_name_of_ours(host: str) -> None:
    refusal = loopback.refusal(scope(host=host))
    assert refusal is not None
    assert refusal.status_code == 421


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "https://127.0.0.1.evil.example",
        "null",
        "file://",
        "localhost",
        "ftp://localhost",
        "http://localhost:8000/",
        "http://localhost|http://evil.example",
    ],
)
def test_a_page_of_another_site_is_refused(origin: str) -> None:
    refusal = loopback.refusal(scope(origin=origin))
    assert refusal is not None
    assert refusal.status_code == 403


@pytest.mark.parametrize(
    ("site", "mode", "kind", "is_served"),
    [
        ("cross-site", "navigate", "document", True),  # a link in a chat
        ("same-origin", "cors", "empty", True),
        ("none", "navigate", "document", True),
        ("cross-site", "no-cors", "image", False),
        ("cross-site", "no-cors", "script", False),
        ("cross-site", "no-cors", "empty", False),
        ("cross-site", "navigate", "iframe", False),
        ("cross-site", "", "", False),
    ],
)
def test_nothing_of_ours_is_loaded_into_a_page_of_another_site(
    site: str, mode: str, kind: str, is_served: bool
) -> None:
    sent = scope(sec_fetch_site=site, sec_fetch_mode=mode, sec_fetch_dest=kind)
    assert (loopback.refusal(sent) is None) == is_served


@pytest.mark.parametrize("header", ["x_forwarded_for", "forwarded", "x_real_ip", "via"])
def test_what_a_proxy_passes_on_is_not_taken_for_this_machines_own(header: str) -> None:
    refusal = loopback.refusal(scope(**{header: "127.0.0.1"}))
    assert refusal is not None
    assert refusal.status_code == 403
