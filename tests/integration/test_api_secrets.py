"""Secrets: stored over HTTP, given to the program of the job that names them, and shown to nobody else."""

import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import httpx2
import psutil
import pytest
from sqlalchemy import select

from jobs import sealing
from jobs.states import State
from jobs.tables import Base, Secret
from tests.api_server import ApiServer
from tests.integration.guarded_api import GuardedApi
from tests.service import Service
from tests.waiting import wait_until
from trainer.run_dir import RUN_DIR_VARIABLE

VALUE = "s3cr3t-\u00e9-of-these-tests"
PROGRAM = """
import hashlib, os, pathlib, sys, time
kept = ("RANKZERO_KEY_FILE", "RANKZERO_TOKEN", "RANKZERO_DATABASE_URL", "RANKZERO_BROKER_URL")
told = [hashlib.sha256(os.environ["API_KEY"].encode()).hexdigest(), *set(kept) & set(os.environ)]
folder = pathlib.Path(sys.argv[1])
(folder / "told.new").write_text(repr(told))
(folder / "told.new").rename(folder / "told")
while not (folder / "go").exists():
    time.sleep(0.05)
"""
SCRIPT = {"recipe": "script", "options": {"script": "/srv/train.py"}}


@pytest.fixture(scope="module")
def sealed(api_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedApi]:
    """The API with a key."""
    folder = tmp_path_factory.mktemp("sealed-api")
    sealing.make_key(folder / "key")
    with GuardedApi(api_database, folder, key_file=folder / "key") as server:
        yield server


def put(api: GuardedApi, name: str, value: str = VALUE, *, by: str = "root") -> httpx2.Response:
    return api.by(by).put(f"/secrets/{name}", json={"value": value})


def test_a_secret_is_listed_by_name_and_shown_to_nobody(sealed: GuardedApi) -> None:
    stored = put(sealed, "wandb")
    assert stored.status_code == 200, stored.text
    assert set(stored.json()) == {"name", "created_at", "updated_at", "updated_by"}
    assert stored.json()["updated_by"] == "root"
    listed = sealed.by("alice").get("/secrets")
    assert "wandb" in [each["name"] for each in listed.json()["items"]]
    assert VALUE not in stored.text + listed.text
    with sealed.database.session_scope(read_only=True) as session:
        assert VALUE not in session.get_one(Secret, "wandb").sealed


def test_a_secret_is_replaced_and_removed(sealed: GuardedApi) -> None:
    first = put(sealed, "rotated").json()
    second = put(sealed, "rotated", "another").json()
    assert second["created_at"] == first["created_at"]
    assert second["updated_at"] > first["updated_at"]
    root = sealed.by("root")
    assert root.delete("/secrets/rotated").status_code == 204
    assert root.delete("/secrets/rotated").status_code == 404


def test_secrets_are_stored_by_admins_and_seen_by_submitters(sealed: GuardedApi) -> None:
    assert put(sealed, "mine", by="alice").status_code == 403
    assert sealed.by("alice").delete("/secrets/wandb").status_code == 403
    assert sealed.by("vera").get("/secrets").status_code == 403


@pytest.mark.parametrize("value", ["", "a\u0000b", "\ud800", "x" * 65_537, None, 3])
def test_what_no_environment_holds_is_refused_and_not_repeated(sealed: GuardedApi, value: object) -> None:
    body = json.dumps({"value": value})
    answer = sealed.by("root").put("/secrets/bad", content=body, headers={"Content-Type": "application/json"})
    field = "body" if value == "\ud800" else "value"  # half a character is refused wherever it stands in a body
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field)
    assert "x" * 100 not in answer.text


@pytest.mark.parametrize("name", ["a b", "a%00", "-a", "%C3%A9", "a" * 129])
def test_a_name_that_is_none_is_refused(sealed: GuardedApi, name: str) -> None:
    assert put(sealed, name).status_code == 422


@pytest.mark.parametrize(
    ("train", "secrets", "field"),
    [
        (SCRIPT, {"API_KEY": "nothing-of-this-name"}, "secrets.API_KEY"),
        (SCRIPT, {"LD_PRELOAD": "wandb"}, "secrets"),
        (SCRIPT, {"RANKZERO_RUN_DIR": "wandb"}, "secrets"),
        (SCRIPT, {"RANK": "wandb"}, "secrets"),
        (SCRIPT | {"options": SCRIPT["options"] | {"env": {"KEY": "x"}}}, {"KEY": "wandb"}, "secrets"),  # type: ignore[operator]  # a dict in a dict of objects
        ({"model": "resnet18", "data": "digits"}, {"API_KEY": "wandb"}, "secrets"),
    ],
)
def test_secrets_that_would_reach_no_program_are_refused(
    sealed: GuardedApi, train: dict[str, object], secrets: dict[str, str], field: str
) -> None:
    put(sealed, "wandb")
    answer = sealed.by("root").post("/jobs", json={"device": "cpu", "train": train, "secrets": secrets})
    assert (answer.status_code, [each["field"] for each in answer.json()["errors"]]) == (422, [field]), answer.text


@pytest.mark.timeout(300)
def test_a_secret_is_in_the_environment_of_its_program_and_nowhere_else(
    postgresql_url: str, broker_url: str, tmp_path: Path
) -> None:
    sealing.make_key(tmp_path / "key")
    (tmp_path / "program.py").write_text(PROGRAM)
    with (
        ApiServer(postgresql_url, tmp_path, broker_url=broker_url, key_file=tmp_path / "key") as api,
        # Whoever starts a worker may have a token in their shell.
        Service(postgresql_url, broker_url, tmp_path, key_file=tmp_path / "key", token="rz_of_an_admin") as service,
    ):
        service.start_worker()
        assert api.http.put("/secrets/wandb", json={"value": VALUE}).status_code == 200
        webhook = api.post("/webhooks", {"url": "https://hooks.example/told"}).headers["Location"]
        train = {"recipe": "script", "options": {"script": str(tmp_path / "program.py"), "args": [str(tmp_path)]}}
        job_id = api.submit(device="0", train=train, secrets={"API_KEY": "wandb"})
        wait_until(
            (tmp_path / "told").exists,
            timeout_s=200,
            what=lambda: f"the program to have its secret; {service.story(job_id)}",
        )
        assert (tmp_path / "told").read_text() == repr([sha256(VALUE.encode()).hexdigest()])
        assert not [process for process in psutil.process_iter() if VALUE in " ".join(_command(process))]
        told = [each for process in psutil.process_iter() if VALUE in (each := _environment(process)).values()]
        (of_run,) = {each[RUN_DIR_VARIABLE] for each in told}  # the launcher and its rank, and nobody else
        assert f"/job-{job_id}/" in of_run
        assert VALUE not in psutil.Process(service.supervisor_pid(job_id)).environ().values()
        (tmp_path / "go").touch()
        service.wait_for(job_id, State.SUCCEEDED)
        shown = [
            api.http.get(path).text
            for path in (
                *(f"/jobs/{job_id}{part}" for part in ("", "/attempts", "/events", "/logs", "/logs/download")),
                *("/secrets", "/audit", f"{webhook}/deliveries", "/hosts", "/metrics"),
            )
        ]
        assert api.http.get(f"{webhook}/deliveries").json()["items"]
        assert not [text for text in shown if VALUE in text or json.dumps(VALUE) in text]
        assert not _rows_with(service, VALUE)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 5  # config.json, journal, and the logs of API, worker, supervisor, launcher and rank
    assert not [path for path in files if VALUE.encode() in path.read_bytes()]


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:  # it has ended
        return []


def _environment(process: psutil.Process) -> dict[str, str]:
    try:
        return process.environ()
    except psutil.Error:  # it has ended, or is somebody else's
        return {}


def _rows_with(service: Service, text: str) -> list[str]:
    with service.database.session_scope(read_only=True) as session:
        return [
            table.name
            for table in Base.metadata.sorted_tables
            if text in str([tuple(row) for row in session.execute(select(table))])
        ]
