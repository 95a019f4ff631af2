"""Every command and program of the pages is run, in the order of its page: here, or by the test that the list names."""

import ast
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import pytest

from jobs.database import Database
from jobs.spec import JobSpec
from jobs.states import Outcome
from jobs.store import jobs
from tests.children import start_child
from tests.deployment import unit
from tests.e2e import pages_elsewhere as elsewhere
from tests.integration.running_job import start_job
from tests.pages import OTHER_LANGUAGES, PAGES, ROOT, SHELLS, Shell, blocks, is_command, steps
from tests.ports import PortClaim
from tests.servers import find_valkey_binary
from tests.service import DIGITS
from tests.waiting import wait_until

URL = "http://127.0.0.1:8000"
"""Where the pages have the service."""
NOT_HERE = elsewhere.IN_TESTS | elsewhere.NOWHERE
HERE = {
    page: run
    for page in PAGES
    if page not in elsewhere.PAGES and (run := [step for step in steps(page) if step.name not in NOT_HERE])
}
"""What is run here, by page."""
TWO_HOSTS = "docs/operations.md"
"""The page that starts a service of its own."""

pytestmark = pytest.mark.timeout(300)


@dataclass(frozen=True)
class Around:
    """What a page takes for granted."""

    files: Mapping[str, Callable[[], str]] = field(default_factory=dict)
    """Files that its reader has, by name."""
    replaced: Mapping[str, str] = field(default_factory=dict)
    """What the page says, and what is said in its place: fewer epochs and devices, smaller pictures, free ports."""


def small(text: str) -> str:
    """A file of a training, with one epoch of small pictures."""
    return re.sub(r"(epochs: )\d", r"\g<1>1", text).replace("image_size: 32", "image_size: 16")


def fenced(page: str, language: str, number: int = 0) -> str:
    return [block.text for block in blocks(page) if block.language == language][number]


def posted_job() -> str:
    """The body that README.md posts, which is the `job.yaml` of the command after it."""
    (step,) = [step for step in steps("README.md") if step.name.startswith("curl http://127.0.0.1:8000/jobs --json")]
    return (
        step.text.partition("'")[2]
        .rstrip("'")
        .replace('"epochs": 5', '"epochs": 2')
        .replace('"image_size": 32', '"image_size": 16')
    )


AROUND = {
    "README.md": Around(
        files={"job.yaml": posted_job},
        replaced={
            "--epochs 5": "--epochs 1",
            '"epochs": 5': '"epochs": 1',
            "image_size=32": "image_size=16",
            '"image_size": 32': '"image_size": 16',
            # Of its trainings one is on two devices.
            "--device 0,1": "--device 0",
            'device="0,1"': 'device="0"',
        },
    ),
    # `plan` takes the flags of `submit`, and is as much of it as other tests leave to be done.
    "docs/cli.md": Around(replaced={"rankzero submit": "rankzero plan"}),
    "docs/own-code.md": Around(
        replaced={"rankzero submit": "rankzero plan", "/home/me/train.py": str(ROOT / "examples" / "ddp_script.py")}
    ),
    "docs/planning.md": Around(
        files={"jobs.jsonl": lambda: fenced("docs/planning.md", "", 2)},
        replaced={"--jobs 5000 --devices 256": "--jobs 50 --devices 64"},
    ),
    "docs/training.md": Around(
        files={"train.yaml": lambda: small(fenced("docs/training.md", "yaml"))},
        replaced={
            "--device 0,1 --output": "--device cpu --output",  # there are no GPUs here
            "step-00000092": "step-00000023",
            'model=net, data="digits",': 'model=net, data="digits", epochs=1,',
        },
    ),
}


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a service, started as its unit starts it, with two devices that it pretends."""
    folder = tmp_path_factory.mktemp("service")
    claim = PortClaim()
    url = f"http://127.0.0.1:{claim.port}"
    (command,) = unit("rankzero.service")["ExecStart"]
    for old, new in {
        "/opt/rankzero/bin/": f"{Path(sys.executable).parent}/",
        "/var/lib/rankzero": str(folder),
        "--port 8000": f"--port {claim.port} --simulated-devices 2",
    }.items():
        assert old in command
        command = command.replace(old, new)
    log = folder / "log"
    environment = os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "RANKZERO_TICK_S": "0.5"}
    process = start_child(command.split(), log=log, folder=folder, environment=environment)

    def is_up() -> bool:
        assert process.poll() is None, log.read_text()
        with suppress(httpx2.TransportError):
            return any(host["alive"] for host in httpx2.get(f"{url}/hosts").json()["items"])
        return False

    try:
        wait_until(is_up, timeout_s=90, what=lambda: f"the service to be up; it says:\n{log.read_text()}")
        yield url
    finally:
        process.terminate()
        process.wait(timeout=90)
        claim.release()


@pytest.fixture
def past(sqlite_url: str) -> str:
    """The URL of the database of a service that has run a job, for who asks what it has run."""
    database = Database(sqlite_url)
    with database.session_scope() as session:
        job_id = jobs.submit(session, JobSpec.model_validate({"device": "cuda:0", "train": DIGITS})).job.id
    start_job(database, job_id).end(Outcome.SUCCEEDED)
    database.dispose()
    return sqlite_url


@pytest.mark.parametrize("page", [page for page in HERE if page != TWO_HOSTS])
def test_every_command_of_a_page_does_what_the_page_says(page: str, up: str, past: str, tmp_path: Path) -> None:
    around = AROUND.get(page, Around())
    for name, content in around.files.items():
        (tmp_path / name).write_text(content())
    here = {URL: up} if any(URL in step.text for step in HERE[page]) else {}
    shell = Shell(tmp_path, RANKZERO_URL=up, RANKZERO_DATABASE_URL=past)
    shell.run(HERE[page], replaced={**here, **around.replaced}, timeout_s=280)


def test_two_hosts_on_one_machine_are_tried_as_the_page_says(tmp_path: Path) -> None:
    claims = [PortClaim() for _ in range(4)]
    broker, api, alpha, beta = (claim.port for claim in claims)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "valkey-server").symlink_to(find_valkey_binary())
    path = os.pathsep.join([str(tmp_path / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    try:
        Shell(tmp_path, PATH=path).run(
            HERE[TWO_HOSTS],
            replaced={
                "26379": str(broker),
                "28000": str(api),
                "29400-29449": f"{alpha}-{alpha}",
                "29450-29499": f"{beta}-{beta}",
                "--set image_size=32 --epochs 2": "--set image_size=16 --epochs 1",
            },
            timeout_s=200,
        )
    finally:
        for claim in claims:
            claim.release()


@pytest.mark.parametrize("page", PAGES)
def test_no_command_of_a_page_hides_in_a_block_of_another_kind(page: str) -> None:
    others = [block for block in blocks(page) if block.language not in (*SHELLS, "python")]
    assert {block.language for block in others} <= {"", *OTHER_LANGUAGES}
    assert [line for block in others for line in block.text.splitlines() if is_command(line)] == []


def test_what_the_list_has_is_on_a_page_that_no_other_test_follows() -> None:
    names = {step.name for page in PAGES if page not in elsewhere.PAGES for step in steps(page)}
    assert NOT_HERE.keys() - names == set()
    assert [page for page in elsewhere.PAGES if page not in PAGES or not steps(page)] == []


@pytest.mark.parametrize("place", sorted({*elsewhere.PAGES.values(), *elsewhere.IN_TESTS.values()}))
def test_a_test_that_the_list_names_is_there(place: str) -> None:
    file, _, name = place.partition("::")
    functions = [
        node.name for node in ast.walk(ast.parse((ROOT / file).read_text())) if isinstance(node, ast.FunctionDef)
    ]
    assert name in functions
