"""`python -m api` where nobody could use it, or everybody: it does not start, and says what to do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from jobs import tokens
from jobs.access import Role
from jobs.database import Database
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


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "gpu-box", ""])
def test_beyond_its_own_machine_it_does_not_start_while_there_is_no_admin(
    sqlite_url: str, tmp_path: Path, host: str
) -> None:
    ended = start(sqlite_url, tmp_path, "--host", host)
    assert ended.returncode == 1
    assert ended.stderr.splitlines() == [
        "rankzero api: beyond this machine it asks for tokens, and there is none of an admin; make one: "
        "python -m jobs.tokens create --user NAME --role admin"
    ]


@pytest.mark.parametrize("way", ["viewer", "expired", "disabled"])
def test_a_token_that_makes_nobody_an_admin_is_none(database_url: str, tmp_path: Path, way: str) -> None:
    database = Database(database_url)
    with database.session_scope() as session:
        role = Role.VIEWER if way == "viewer" else Role.ADMIN
        tokens.create(session, "alice", role, token_name="x", days=None)
        if way == "expired":
            session.connection().exec_driver_sql("UPDATE tokens SET expires_at = created_at")
        if way == "disabled":
            session.connection().exec_driver_sql("UPDATE users SET disabled_at = created_at")
    database.dispose()
    ended = start(database_url, tmp_path, access="tokens")
    assert ended.returncode == 1
    assert "there is none of an admin" in ended.stderr


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
