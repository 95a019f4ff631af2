"""The world of the chaos run: a whole service, its servers, its API and its hosts, and what may be taken from them."""

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from tests.api_server import ApiServer
from tests.faults.matrix.watch import Watch
from tests.proxy import Proxy
from tests.servers import PostgresServer, ValkeyServer
from tests.service import Service
from worker.processes import MarkedProcess, marked_processes

LEASE_S = 9
DEVICES = 4
HOSTS = {"alpha": "127.0.0.1", "beta": "127.0.0.2"}
"""The hosts, and where the ranks of the other one reach each."""
CUT_OFF = "beta"
"""The host whose way to the database can be cut."""


class World:
    """All of it, in one folder. Start its parts from the main thread: they end with the thread that started them."""

    def __init__(self, postgres: PostgresServer, valkey: ValkeyServer, database_url: str, folder: Path) -> None:
        self.postgres = postgres
        self.valkey = valkey
        self.folder = folder
        self.workers: dict[str, subprocess.Popen[bytes]] = {}
        self._closing = ExitStack()
        self.service = self._closing.enter_context(
            Service(
                database_url,
                valkey.url,
                folder,
                tick_s=1,
                lease_s=LEASE_S,
                heartbeat_s=1,
                host_timeout_s=4,
                stop_grace_s=2,
                checkpoint_grace_s=2,
                retry_backoff_max_s=2,
                quarantine_after=0,  # what is killed here is no fault of a device, and nobody would release it
                simulated_devices=DEVICES,
            )
        )
        self.proxy = self._closing.enter_context(Proxy(database_url))
        self.api = ApiServer(database_url, folder, broker_url=valkey.url)
        self.watch = Watch(str(folder))

    def __enter__(self) -> Self:
        try:
            self._closing.enter_context(self.api)
            for name in HOSTS:
                self.start_worker(name)
            self.watch.start()
            self._closing.callback(self.watch.stop)
        except BaseException:
            self._closing.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        # The API's end closes its connections, for which the database need not answer.
        self._closing.close()

    def start_worker(self, host_name: str) -> None:
        """Start the worker of a host, and wait for nothing: the database may be away."""
        way = {"database_url": self.proxy.url} if host_name == CUT_OFF else {}
        self.workers[host_name] = self.service.spawn_worker(host_name, address=HOSTS[host_name], **way)

    def kill_worker(self, host_name: str) -> None:
        self.workers[host_name].kill()
        self.workers[host_name].wait()

    def supervisors(self, host_name: str | None = None) -> Sequence[MarkedProcess]:
        """The supervisors on a host, or on all."""
        return [each for each in self._processes(host_name) if not each.run_dir]

    def of_runs(self, host_name: str | None = None) -> Sequence[MarkedProcess]:
        """The launchers, the ranks and their children on a host, or on all."""
        return [each for each in self._processes(host_name) if each.run_dir]

    def send(self, process: MarkedProcess, number: signal.Signals) -> bool:
        """Send a signal to a process of this world; False if it has gone: its number may be another's by now."""
        try:
            handle = os.pidfd_open(process.pid)
        except ProcessLookupError:
            return False
        try:
            if str(self.folder).encode() not in Path(f"/proc/{process.pid}/environ").read_bytes():
                return False
            signal.pidfd_send_signal(handle, number)
        except (ProcessLookupError, FileNotFoundError):
            return False
        finally:
            os.close(handle)
        return True

    def kill_host(self, host_name: str) -> int:
        """Kill all that runs on a host, as a loss of its power does; return how many supervisors there were."""
        self.kill_worker(host_name)
        supervisors = self.supervisors(host_name)
        for process in (*supervisors, *self.of_runs(host_name)):
            self.send(process, signal.SIGKILL)
        return len(supervisors)

    def _processes(self, host_name: str | None) -> Sequence[MarkedProcess]:
        root = f"{self.folder / host_name if host_name else self.folder}/"
        return [each for each in marked_processes() if (each.run_dir or each.supervisor_of or "").startswith(root)]
