"""The embedded service as one process: it comes up whole, mends itself, and leaves nothing behind however it ends."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest

from rankzero.client import Client
from rankzero.embedded import OWNER_VARIABLE
from tests.catalog import known_catalog
from tests.children import start_child
from tests.service import DIGITS, program_train
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(300)


class Up:
    """`rankzero up` on a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.data_dir = folder / "data"
        self.output = folder / "up.log"
        self.output.write_text("")
        self._parts: set[psutil.Process] = set()
        self.process = start_child(
            [*command(), "--data-dir", str(self.data_dir), "--simulated-devices", "2", "--json"],
            log=self.output,
            folder=folder,
            environment=environment() | known_catalog() | {"RANKZERO_SCRIPTS": "on"},
        )
        wait_until(self._is_up, timeout_s=60, what=lambda: f"the service to be up; it says:\n{self.output.read_text()}")
        self.url: str = self._document()["url"]
        self.dashboard: str | None = self._document()["dashboard"]
        self.client = Client(self.url)

    def owned(self) -> list[psutil.Process]:
        """Every live process of the service but the first, whatever its parent."""
        found = set(self._parts)
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.environ().get(OWNER_VARIABLE, "").startswith(f"{self.process.pid}:"):
                    found.add(process)
        # Broker and worker write a title over their environment: they are known as children, while there is a parent.
        with suppress(psutil.Error):
            self._parts |= set(psutil.Process(self.process.pid).children())
        return [process for process in found | self._parts if process.is_running()]

    def pid_of(self, name: str) -> int | None:
        """The process of one part, `broker`, `api` or `worker`; None while there is none."""
        # Celery renames its process where setproctitle is installed.
        marks = {"broker": ("valkey-server",), "api": ("-m api",), "worker": ("-m worker", "celeryd")}
        for process in psutil.Process(self.process.pid).children():
            with suppress(psutil.Error):
                if any(mark in " ".join(process.cmdline()) for mark in marks[name]):
                    return process.pid
        return None

    def submit(self, **train: Any) -> int:
        return self.client.submit(device="0,1", train=DIGITS | train).id

    def submit_program(self, steps: int) -> int:
        return self.client.submit(device="0,1", train=program_train(steps=steps)).id

    def broker_state(self) -> str:
        state = httpx2.get(f"{self.url}/readyz").json()["broker"]
        assert isinstance(state, str)
        return state

    def wait_for_step(self, job_id: int) -> None:
        def has_begun() -> bool:
            progress = self.client.get(job_id).progress
            return progress is not None and (progress.step or 0) > 0

        wait_until(has_begun, timeout_s=90, what=lambda: f"job {job_id} to train: {self.client.get(job_id)}")

    def wait_until_gone(self, timeout_s: float) -> None:
        wait_until(lambda: not self.owned(), timeout_s=timeout_s, what=lambda: f"{self.owned()} to be gone")

    def close(self) -> None:
        self.client.close()
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.wait_until_gone(15)

    def _is_up(self) -> bool:
        assert self.process.poll() is None, self.output.read_text()
        with suppress(ValueError):
            return bool(self._document())
        return False

    def _document(self) -> Any:
        text = self.output.read_text()
        return json.loads(text[text.index("{") : text.rindex("}") + 1])


def command() -> list[str]:
    return [sys.executable, "-m", "rankzero.cli", "up", "--port", "0"]


def environment() -> dict[str, str]:
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "rankzero-tests"
    return os.environ | {"OMP_NUM_THREADS": "1", "RANKZERO_DATA_ROOT": str(cache), "CUDA_VISIBLE_DEVICES": ""}


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    up = Up(tmp_path)
    yield up
    up.close()


def test_nothing_is_alive_soon_after_a_sigkill_of_the_first_process(up: Up) -> None:
    up.wait_for_step(up.submit(epochs=200))
    assert len(up.owned()) >= 6  # broker, API, worker, supervisor, and the run's launcher and ranks

    up.process.kill()
    up.process.wait()

    up.wait_until_gone(10)


def test_the_address_of_the_dashboard_is_told_where_it_is_built(up: Up) -> None:
    address = f"{up.url}/ui/"
    assert up.dashboard == (address if httpx2.get(address).is_success else None)


def test_ctrl_c_ends_everything_in_order_and_the_job_goes_on_after_the_next_start(up: Up, tmp_path: Path) -> None:
    job_id = up.submit_program(steps=100)
    up.wait_for_step(job_id)

    up.process.send_signal(signal.SIGINT)

    assert up.process.wait(timeout=60) == 0, up.output.read_text()
    up.wait_until_gone(0)
    again = Up(tmp_path)
    try:
        job = again.client.wait(job_id, timeout_s=120)
        assert job.state == "succeeded", job
        events = [event.to_state for event in again.client.events(job_id) if event.kind == "state"]
        assert events.count("queued") == 1
    finally:
        again.close()


def test_sigterm_ends_everything_as_ctrl_c_does_and_the_key_of_its_secrets_is_its_users_alone(up: Up) -> None:
    key = up.data_dir / "key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert httpx2.put(f"{up.url}/secrets/wandb", json={"value": "x"}).status_code == 200

    up.process.terminate()
    assert up.process.wait(timeout=60) == 0
    up.wait_until_gone(0)


@pytest.mark.parametrize("name", ["broker", "api", "worker"])
def test_a_part_that_dies_is_started_again_and_a_job_under_way_succeeds_in_the_same_attempt(up: Up, name: str) -> None:
    job_id = up.submit_program(steps=100)
    up.wait_for_step(job_id)
    victim = up.pid_of(name)
    assert victim is not None

    os.kill(victim, signal.SIGKILL)

    wait_until(lambda: up.pid_of(name) not in (None, victim), timeout_s=20, what=f"the {name} to be started again")
    job = up.client.wait(job_id, timeout_s=120)
    assert (job.state, job.attempt) == ("succeeded", 1)
    second = up.client.wait(up.submit_program(steps=1), timeout_s=120)
    assert second.state == "succeeded"


def test_a_second_service_on_the_same_folder_is_refused_and_the_first_goes_on(up: Up) -> None:
    second = subprocess.run(
        [*command(), "--data-dir", str(up.data_dir)], capture_output=True, text=True, check=False, timeout=60
    )
    assert second.returncode == 1
    assert second.stderr.count("\n") == 1
    assert f"process {up.process.pid}, {up.url}" in second.stderr
    assert up.client.is_ready()
    assert up.broker_state() == "answers"


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = subprocess.run(
            [*command()[:-1], port, "--data-dir", str(tmp_path)], capture_output=True, text=True, check=False
        )
    assert done.returncode == 1
    assert f"port {port}" in done.stderr
    assert "--port" in done.stderr


def test_a_folder_whose_path_is_too_long_for_a_socket_works_all_the_same(tmp_path: Path) -> None:
    folder = tmp_path / ("long-" * 20)
    folder.mkdir()
    up = Up(folder)
    assert up.broker_state() == "answers"
    up.close()
