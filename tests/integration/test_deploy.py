"""docker-compose.yml and the Dockerfiles: each of their commands runs, with what its image installs and no more.

There is no engine here, so the containers are processes: each has the environment that the files give it, with the
tests' own servers for two of them and folders for the volumes.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import httpx2
import psutil
import pytest

from tests.children import start_child
from tests.conftest import drop
from tests.deployment import (
    COMPOSE,
    Container,
    containers,
    folder_without,
    head_commands,
    installed_by,
    package,
    unit,
    variables_of,
)
from tests.ports import PortClaim
from tests.servers import PostgresServer, ValkeyServer, find_valkey_binary
from tests.service import DIGITS
from tests.waiting import wait_until
from worker.processes import marked_processes

PASSWORD = "of-the-tests"
BUILT = containers({"RANKZERO_POSTGRES_PASSWORD": PASSWORD})
DATABASE = f"postgresql+psycopg://rankzero:{PASSWORD}@postgres/rankzero"
"""The database as the containers know it."""
BROKER = "redis://redis:6379/0"
VOLUMES = "/var/lib/rankzero"
TORCH = {"torch", "torchvision", "numpy", "pillow", "scikit-learn", "pycocotools"}

pytestmark = pytest.mark.timeout(240)


class Engine:
    """Runs the containers as processes of this machine."""

    def __init__(self, folder: Path, *, database_url: str, broker_url: str) -> None:
        self.folder = folder
        self._claims = [PortClaim(), PortClaim()]
        self.port, self.second_port = (claim.port for claim in self._claims)
        self._for = {DATABASE: database_url, BROKER: broker_url}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        (folder / "volumes" / "keys").mkdir(parents=True, mode=0o700)
        self._package = package(folder / "built")
        self.token = ""

    def run(self, container: Container, command: Sequence[str] = ()) -> "subprocess.CompletedProcess[str]":
        """Run a container to its end, as it is or with another command."""
        return subprocess.run(
            self._here(command or container.command),
            cwd=self.folder,
            env=self.environment(container),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def start(self, name: str) -> None:
        """Start a container and return at once."""
        self.start_command(name, BUILT[name].command, self.environment(BUILT[name]))

    def start_command(self, name: str, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start something that is to be known by this name, and return at once."""
        self._processes[name] = start_child(
            self._here(command), log=self.log(name), folder=self.folder, environment=environment
        )

    def environment(self, container: Container) -> dict[str, str]:
        """What a container's process finds, whose Python sees what its image installs alone."""
        assert container.image is not None
        extras = container.image.extras
        hidden = self.folder / f"without-{'-'.join(extras)}"
        if not hidden.exists():
            folder_without(installed_by(extras), hidden)
        return os.environ | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": f"{hidden}{os.pathsep}{self._package}",
            "OMP_NUM_THREADS": "1",
            "CUDA_VISIBLE_DEVICES": "",
            **{name: self._for.get(value, self._moved(value)) for name, value in container.environment.items()},
        }

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def client(self, *, port: int | None = None) -> httpx2.Client:
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx2.Client(base_url=f"http://127.0.0.1:{port or self.port}", headers=headers, timeout=30)

    def is_healthy(self) -> bool:
        """Whether the health check of the API's container passes."""
        return self.run(BUILT["api"], BUILT["api"].healthcheck).returncode == 0

    def wait_for_api(self, name: str, port: int) -> None:
        def answers() -> bool:
            with suppress(httpx2.TransportError), self.client(port=port) as client:
                return client.get("/readyz").status_code == 200
            return False

        wait_until(answers, timeout_s=60, what=lambda: f"{name} to be ready; its log:\n{self.log(name).read_text()}")

    def is_running(self, name: str) -> bool:
        return self._processes[name].poll() is None

    def stop(self, name: str, *, timeout_s: float) -> int:
        """Stop a container as an engine does, and return its exit status."""
        process = self._processes.pop(name)
        process.terminate()
        return process.wait(timeout=timeout_s)

    def close(self) -> None:
        for process in self._processes.values():
            process.kill()
            process.wait()
        for marked in marked_processes():
            if (marked.run_dir or "").startswith(str(self.folder)):
                with suppress(psutil.NoSuchProcess):
                    psutil.Process(marked.pid).kill()
        for claim in self._claims:
            claim.release()

    def _here(self, command: Sequence[str]) -> list[str]:
        port = re.compile(r"(?<![0-9])8000(?![0-9])")
        return [port.sub(str(self.port), part) for part in command]

    def _moved(self, value: str) -> str:
        return value.replace(VOLUMES, str(self.folder / "volumes"))


@pytest.fixture(scope="module")
def engine(
    postgres_session: PostgresServer, valkey_session: ValkeyServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Engine]:
    """The containers up to the API and the worker, started in the order in which the file has them wait."""
    postgres_session.start()
    valkey_session.start()
    valkey_session.flushall()
    url = postgres_session.create_database()
    engine = Engine(tmp_path_factory.mktemp("engine"), database_url=url, broker_url=valkey_session.url)
    try:
        for name, condition in BUILT["api"].waits_for.items():
            if condition == "service_completed_successfully":
                ran = engine.run(BUILT[name])
                assert ran.returncode == 0, f"{name}: {ran.stderr}"
        ran = engine.run(BUILT["api"], token_command())
        assert ran.returncode == 0, ran.stderr
        engine.token = ran.stdout.strip()
        engine.start("api")
        engine.wait_for_api("api", engine.port)
        engine.start("worker")
        yield engine
    finally:
        engine.close()
        drop(postgres_session, url)


def token_command() -> list[str]:
    """What the head of docker-compose.yml runs in the API's container to make the first token."""
    (line,) = [each for each in head_commands(COMPOSE) if "jobs.tokens" in each]
    docker, inside = line.split(" api ", 1)
    assert docker == "docker compose run --build --rm"
    return shlex.split(inside.replace('"$USER"', "operator"))


def test_the_api_installs_no_torch_and_the_worker_does() -> None:
    (api, worker) = (BUILT[name].image for name in ("api", "worker"))
    assert api is not None
    assert worker is not None
    assert installed_by(api.extras) & TORCH == set()
    assert installed_by(worker.extras) >= TORCH


def test_what_runs_is_what_the_images_install(engine: Engine) -> None:
    for name in ("api", "worker"):
        ran = engine.run(BUILT[name], ("python", "-c", "import jobs, migrations, trainer; print(*jobs.__path__)"))
        assert ran.stdout.strip() == str(engine.folder / "built" / "package" / "jobs"), ran.stderr


def test_api_and_worker_wait_for_schema_key_and_broker() -> None:
    once = {"migrate": "service_completed_successfully", "key": "service_completed_successfully"}
    assert BUILT["api"].waits_for == once | {"redis": "service_healthy"}
    assert BUILT["worker"].waits_for == BUILT["api"].waits_for
    assert BUILT["migrate"].waits_for == {"postgres": "service_healthy"}


def test_the_password_that_the_head_makes_fills_in_the_database(tmp_path: Path) -> None:
    (line,) = [each for each in head_commands(COMPOSE) if "> .env" in each]
    subprocess.run(["bash", "-ec", line], cwd=tmp_path, check=True)
    made = variables_of(tmp_path / ".env")
    assert re.fullmatch(r"[0-9a-f]{32}", made["RANKZERO_POSTGRES_PASSWORD"])
    url = containers(made)["api"].environment["RANKZERO_DATABASE_URL"]
    assert url == f"postgresql+psycopg://rankzero:{made['RANKZERO_POSTGRES_PASSWORD']}@postgres/rankzero"


def test_without_a_password_nothing_is_filled_in() -> None:
    with pytest.raises(AssertionError, match=r"RANKZERO_POSTGRES_PASSWORD: set it in \.env"):
        containers({})


def test_what_runs_once_may_run_again_and_leaves_the_key_as_it_is(engine: Engine) -> None:
    key = engine.folder / "volumes" / "keys" / "key"
    made = key.read_bytes()
    assert key.stat().st_mode & 0o777 == 0o600
    for name in ("migrate", "key"):
        again = engine.run(BUILT[name])
        assert again.returncode == 0, f"{name}: {again.stderr}"
    assert key.read_bytes() == made


def test_the_health_check_passes_while_the_api_is_ready_and_only_then(engine: Engine) -> None:
    assert engine.is_healthy()
    elsewhere = [part.replace("8000", str(engine.second_port)) for part in BUILT["api"].healthcheck]
    assert engine.run(BUILT["api"], elsewhere).returncode != 0


def test_the_api_asks_for_the_token_that_was_made_and_seals_secrets_with_the_key(engine: Engine) -> None:
    with engine.client() as client:
        assert client.get("/me").json()["user"] == "operator"
        stored = client.put("/secrets/wandb", json={"value": "0123456789"})
        assert stored.is_success, stored.text
        assert client.get("/jobs", headers={"Authorization": ""}).status_code == 401


def test_a_job_trains_on_the_worker_and_the_api_has_its_checkpoint(engine: Engine) -> None:
    def has_ended() -> bool:
        assert engine.is_running("worker"), engine.log("worker").read_text()
        return client.get(f"/jobs/{job_id}").json()["state"] in ("succeeded", "failed")

    with engine.client() as client:
        posted = client.post("/jobs", json={"device": "cpu", "train": DIGITS | {"epochs": 1}})
        assert posted.status_code == 201, posted.text
        job_id = posted.json()["id"]
        wait_until(has_ended, timeout_s=120, what=lambda: f"the job to end: {client.get(f'/jobs/{job_id}').text}")
        job = client.get(f"/jobs/{job_id}").json()
        assert job["state"] == "succeeded", job["failure"]
        (best,) = client.get(f"/jobs/{job_id}/checkpoints?best=true").json()["items"]
        file = client.get(f"/jobs/{job_id}/checkpoints/{best['id']}/file")
        assert (file.status_code, len(file.content)) == (200, best["size_bytes"])


def test_the_unit_of_the_api_adds_a_process_whose_proxy_is_believed(engine: Engine) -> None:
    settings = unit("rankzero-api@.service", instance=str(engine.second_port))
    (command,) = settings["ExecStart"]
    assert "/etc/rankzero/rankzero.env" in settings["EnvironmentFile"]
    environment = dict(pair.split("=", 1) for line in settings["Environment"] for pair in line.split())
    words = shlex.split(command.replace("/opt/rankzero/bin/", ""))
    engine.start_command("second", words, engine.environment(BUILT["api"]) | environment)
    engine.wait_for_api("second", engine.second_port)
    with engine.client(port=engine.second_port) as client:
        assert client.get("/me").json()["user"] == "operator"
        attacker = {"Authorization": f"Bearer rz_{'A' * 43}", "X-Forwarded-For": "198.51.100.7"}
        tried = [client.get("/me", headers=attacker).status_code for _ in range(12)]
        assert tried[-1] == 429
        # Of another client of the same proxy nobody is kept waiting.
        neighbour = attacker | {"X-Forwarded-For": "198.51.100.8"}
        assert client.get("/me", headers=neighbour).status_code == 401


def test_a_worker_that_is_stopped_ends_within_its_time_of_grace(engine: Engine) -> None:
    grace = BUILT["worker"].stop_grace_period
    assert grace == "60s"
    assert engine.stop("worker", timeout_s=60) == 0, engine.log("worker").read_text()


def test_the_broker_runs_as_the_file_has_it(tmp_path: Path) -> None:
    program, *options = BUILT["redis"].command
    assert program == "redis-server"
    claim = PortClaim()
    command = [find_valkey_binary(), *options, "--bind", "127.0.0.1", "--port", str(claim.port), "--dir", str(tmp_path)]
    log = tmp_path / "log"
    broker = start_child(command, log=log, folder=tmp_path)
    try:
        wait_until(lambda: "Ready to accept connections" in log.read_text(), timeout_s=20, what="the broker to start")
        assert BUILT["redis"].healthcheck == ("redis-cli", "ping")
    finally:
        broker.kill()
        broker.wait()
        claim.release()


def test_the_health_check_of_the_database_asks_by_tcp(postgres_session: PostgresServer) -> None:
    program, *options = BUILT["postgres"].healthcheck
    assert program == "pg_isready"
    binary = shutil.which(program, path=f"{postgres_session.binaries}{os.pathsep}{os.environ['PATH']}")
    if binary is None:
        pytest.skip("there is no pg_isready here")
    postgres_session.start()
    asked = subprocess.run([binary, *options, "--port", str(postgres_session.port)], check=False, capture_output=True)
    assert asked.returncode == 0, asked.stdout
