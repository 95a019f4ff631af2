"""The API as a process of its own, for tests that talk HTTP to it."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

import httpx2

from jobs.database import Database
from rankzero.client import Client
from tests.children import start_child
from tests.ports import PortClaim
from tests.waiting import wait_until

NO_BROKER = "redis+socket:///nonexistent/broker"
"""A broker that is always down."""
TRAIN = {"model": "resnet18", "data": "digits"}
"""The least that a job has to say of its training."""


class ApiServer:
    """The API on a database, which the test may end and start again on the same port."""

    options: ClassVar[Sequence[str]] = ()
    """Further arguments of `python -m api`."""

    def __init__(
        self,
        database_url: str,
        folder: Path,
        *,
        broker_url: str = NO_BROKER,
        address: str = "127.0.0.1",
        **settings: object,
    ) -> None:
        self._claim = PortClaim()
        self._address = address
        self.port = self._claim.port
        self.url = f"http://127.0.0.1:{self.port}"
        self.database = Database(database_url)
        self.log = folder / "api.log"
        self._folder = folder
        self._environment = os.environ | {
            "RANKZERO_DATABASE_URL": database_url,
            "RANKZERO_BROKER_URL": broker_url,
            **{f"RANKZERO_{name.upper()}": str(value) for name, value in settings.items()},
        }
        self._process: subprocess.Popen[bytes] | None = None
        self.http = httpx2.Client(base_url=self.url, timeout=30)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it and return once it answers."""
        command = [sys.executable, "-m", "api", "--host", self._address, "--port", str(self._claim.port), *self.options]
        self._process = start_child(command, log=self.log, folder=self._folder, environment=self._environment)
        wait_until(self._answers, timeout_s=30, what=lambda: f"the API to answer; its log:\n{self.log.read_text()}")

    def stop(self) -> None:
        """End it in order."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(timeout=20)

    def kill(self) -> None:
        """End it with SIGKILL, in the middle of whatever it answers."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def client(self) -> Client:
        """A client of it."""
        return Client(self.url)

    def post(self, path: str, body: object) -> httpx2.Response:
        return self.http.post(path, json=body)

    def submit(self, **fields: object) -> int:
        """Submit a job over HTTP and return its id."""
        answer = self.post("/jobs", {"device": "cpu", "train": TRAIN} | fields)
        assert answer.status_code == 201, answer.text
        job_id = answer.json()["id"]
        assert isinstance(job_id, int)
        return job_id

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.http.close()
        self.stop()
        self.database.dispose()
        self._claim.release()

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, f"the API ended while starting; its log:\n{self.log.read_text()}"
        try:
            return self.http.get("/healthz").is_success
        except httpx2.TransportError:
            return False
