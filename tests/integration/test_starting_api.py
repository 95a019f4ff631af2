"""`python -m api` where nobody could use it, or everybody: it does not start, and says what to do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from api.__main__ import _access_at
from jobs import tokens
from jobs.access import Access, Role
from jobs.database import Database
from jobs.store.tokens import has_admin
from tests.api_server import NO_BROKER, ApiServer
from tests.ports import PortClaim


def start(url: str, folder: Path, *options: str, **settings: str) -> "subprocess.CompletedProcess[str]":
    """Start an API that is expected to end at once."""
    environment = os.environ | {
        "RANKZERO_DATABASE_URL": url,
        "RANKZERO_BROKER_URL": NO_BROKER,
        **{f"RANKZERO_{name.upper()}": value for name, value in settings.items()},
    }
    command = [sys.executable, "-m", "api", "--port", "0", *options]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=100
    )


def test_beyond_its_own_machine_it_does_not_start_while_there_is_no_admin(sqlite_url: str, tmp_path: Path) -> None:
    ended = start(sqlite_url, tmp_path, "--host", "0.0.0.0")
    assert ended.returncode == 1
    assert ended.stderr.splitlines() == [
        "rankzero api: beyond this machine it asks for tokens, and there is none of an admin; make one: "
        "python -m jobs.tokens create --user NAME --role admin"
    ]


@pytest.mark.parametrize(
    ("address", "is_behind_proxy", "access"),
    [
        ("127.0.0.1", False, Access.LOOPBACK),
        ("localhost", False, Access.LOOPBACK),
        ("::1", False, Access.LOOPBACK),
        ("127.0.0.1", True, Access.TOKENS),
        ("0.0.0.0", False, Access.TOKENS),
        ("::", False, Access.TOKENS),
        ("gpu-box", False, Access.TOKENS),
        ("", False, Access.TOKENS),
    ],
)
def test_where_it_listens_says_whether_it_asks_for_tokens(address: str, is_behind_proxy: bool, access: Access) -> None:
    assert _access_at(address, is_behind_proxy=is_behind_proxy) is access


@pytest.mark.parametrize(
    "change",
    [
        "tokens SET role = 'submitter'",
        "tokens SET expires_at = created_at",
        "tokens SET revoked_at = created_at",
        "users SET role = 'viewer'",
        "users SET disabled_at = created_at",
    ],
)
def test_a_token_that_makes_nobody_an_admin_is_none(database_url: str, change: str) -> None:
    database = Database(database_url)
    with database.session_scope() as session:
        tokens.create(session, "alice", Role.ADMIN, token_name="x", days=None)
        assert has_admin(session)
        session.connection().exec_driver_sql(f"UPDATE {change}")
        assert not has_admin(session)
    database.dispose()


def test_a_database_without_the_schema_is_told_first(tmp_path: Path) -> None:
    ended = start(f"sqlite:///{tmp_path / 'empty.db'}", tmp_path, "--host", "0.0.0.0")
    assert ended.returncode == 1
    assert "python -m jobs.database upgrade" in ended.stderr


def test_with_an_admin_it_serves_others_and_asks_everybody_for_a_token(sqlite_url: str, tmp_path: Path) -> None:
    database = Database(sqlite_url)
    with database.session_scope() as session:
        token = tokens.create(session, "alice", Role.ADMIN, token_name="x", days=None)
    database.dispose()
    with ApiServer(sqlite_url, tmp_path, address="0.0.0.0") as api:
        assert api.http.get("/me").status_code == 401
        assert api.http.get("/me", headers={"Authorization": f"Bearer {token}"}).json()["access"] == "tokens"


def test_a_database_that_does_not_answer_keeps_nobody_from_starting_it_and_lets_nobody_in(tmp_path: Path) -> None:
    claim = PortClaim()
    away = f"postgresql+psycopg://nobody@127.0.0.1:{claim.port}/nothing"
    try:
        with ApiServer(away, tmp_path, access="tokens") as api:
            answer = api.http.get("/me", headers={"Authorization": "Bearer rz_" + "A" * 43})
            assert answer.status_code == 503
    finally:
        claim.release()


def test_a_proxy_to_believe_is_named_by_its_address(sqlite_url: str, tmp_path: Path) -> None:
    ended = start(sqlite_url, tmp_path, "--forwarded-allow-ips", "*")
    assert ended.returncode == 2
    assert "does not appear to be an IPv4 or IPv6 network" in ended.stderr
