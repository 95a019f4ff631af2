"""A client that is generated from the schema, by a generator of others, and a job that is followed with it."""

import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.states import Outcome
from tests.api_server import ApiServer
from tests.integration.conftest import api_on_sqlite
from tests.integration.running_job import start_job

GENERATOR = "openapi-python-client>=0.29"
FOLLOW = """
import sys, time
from rank_zero_client import Client
from rank_zero_client.api.jobs import get_job, list_events, submit_job
from rank_zero_client.models import JobSpec

client = Client(base_url=sys.argv[1], raise_on_unexpected_status=True)
spec = JobSpec.from_dict({"name": "generated", "device": "cpu", "train": {"model": "resnet18", "data": "digits"}})
job = submit_job.sync(client=client, body=spec)
print("submitted", job.id, job.state, flush=True)
while job.finished_at is None:
    time.sleep(0.2)
    job = get_job.sync(job.id, client=client)
events = list_events.sync(job.id, client=client)
print("finished", job.id, job.state, *[event.to_state for event in events.items if event.kind == "state"], flush=True)
wrong = submit_job.sync_detailed(client=client, body=JobSpec.from_dict({"device": "0,0", "train": {}}))
print("refused", int(wrong.status_code), sorted(error.field for error in wrong.parsed.errors), flush=True)
"""


@pytest.fixture(scope="module")
def generator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The generator, in an environment of its own above ours: it needs an older typer than we do, and little else."""
    folder = tmp_path_factory.mktemp("generator")
    venv.create(folder, symlinks=True)
    own = sysconfig.get_path("purelib", scheme="venv", vars={"base": str(folder), "platbase": str(folder)})
    (Path(own) / "ours.pth").write_text(sysconfig.get_path("purelib"))
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python")]
    install = [*pip, "install", "--quiet", "--no-compile", "--retries", "1", GENERATOR]
    installed = subprocess.run(install, capture_output=True, text=True, check=False)
    if installed.returncode and ("Connection" in installed.stderr or "No matching distribution" in installed.stderr):
        pytest.skip(f"no package index that has {GENERATOR} answers: {installed.stderr.splitlines()[-1]}")
    assert installed.returncode == 0, installed.stderr
    return folder


@pytest.fixture
def served(migrated_sqlite_template: Path, tmp_path: Path) -> Iterator[ApiServer]:
    with api_on_sqlite(migrated_sqlite_template, tmp_path) as server:
        yield server


@pytest.mark.timeout(300)
def test_a_generated_client_submits_a_job_and_follows_it(generator: Path, served: ApiServer, tmp_path: Path) -> None:
    schema = tmp_path / "openapi.json"
    schema.write_text(served.http.get("/openapi.json").text)
    generate = [
        str(generator / "bin" / "openapi-python-client"),
        "generate",
        "--path",
        str(schema),
        "--fail-on-warning",
    ]
    tools = [generator / "bin", Path(sys.executable).parent]  # its own, and the formatter that it runs
    with_its_tools = os.environ | {"PATH": os.pathsep.join([*map(str, tools), os.environ["PATH"]])}
    made = subprocess.run(generate, capture_output=True, text=True, cwd=tmp_path, env=with_its_tools, check=False)
    assert made.returncode == 0, made.stdout + made.stderr
    assert "Unable to parse" not in made.stdout, made.stdout

    client = tmp_path / "rank-zero-client"
    follower = subprocess.Popen(
        [generator / "bin" / "python", "-c", FOLLOW, served.url], cwd=client, stdout=subprocess.PIPE, text=True
    )
    try:
        assert follower.stdout is not None
        job_id = int(follower.stdout.readline().split()[1])
        job = start_job(served.database, job_id)  # a fleet of which only its writes are there
        job.add(progress={"step": 3, "total_steps": 3})
        job.end(Outcome.SUCCEEDED)
        told, _ = follower.communicate(timeout=60)
    finally:
        follower.kill()
        follower.wait()
    assert told.splitlines() == [
        f"finished {job_id} succeeded starting running succeeded",
        "refused 422 ['device', 'train.data', 'train.model']",
    ]
