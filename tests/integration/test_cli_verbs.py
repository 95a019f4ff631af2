"""The commands that act on jobs, hosts and quotas, as processes; on one engine, since they talk HTTP alone."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import update

from jobs.database import now
from jobs.states import Outcome
from jobs.tables import Host
from rankzero.cli.options import login_name
from tests.api_server import ApiServer
from tests.integration.command import DETACHED, document, rankzero
from tests.integration.conftest import api_on_sqlite
from tests.integration.running_job import saved, start_job


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory, migrated_sqlite_template: Path) -> Iterator[ApiServer]:
    with api_on_sqlite(migrated_sqlite_template, tmp_path_factory.mktemp("api")) as server:
        yield server


def test_a_job_is_for_whom_its_file_names_unless_a_flag_names_another(api: ApiServer, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("user: ann\ntrain: {model: resnet18, data: digits}\n")
    assert document(rankzero(api.url, "submit", str(file), "-d", "--json"))["user"] == "ann"
    assert document(rankzero(api.url, "submit", str(file), "--user", "bob", "-d", "--json"))["user"] == "bob"


def test_hosts_and_limits_of_a_job_are_flags_and_it_is_for_who_is_logged_in(api: ApiServer) -> None:
    flags = ("--device", "{count: 2}", "--nodes", "2", "--preemptible", "--time-limit", "1.5h", "--hang-limit", "90")
    spec = document(rankzero(api.url, *DETACHED, *flags, "--batch", "64"))["spec"]
    assert (spec["nodes"], spec["preemptible"], spec["time_limit_s"], spec["hang_limit_s"]) == (2, True, 5400, 90)
    assert (spec["device"]["count"], spec["user"]) == (2, login_name())


def test_a_job_is_paused_resumed_and_gets_another_priority_and_labels(api: ApiServer) -> None:
    job_id = str(document(rankzero(api.url, *DETACHED, "--device", "cuda:9", "--label", "old=1"))["id"])

    assert (
        rankzero(api.url, "pause", job_id).stdout == f"job {job_id} is paused; let it go on: rankzero resume {job_id}\n"
    )
    assert rankzero(api.url, "resume", job_id).stdout == f"job {job_id} is queued\n"
    changed = rankzero(api.url, "set", job_id, "priority=90", "label.team=a=b", "label.old-").stdout
    assert changed == f"job {job_id} is queued, with priority 90, labelled team=a=b\n"
    assert document(rankzero(api.url, "cancel", job_id, "--json"))["labels"] == {"team": "a=b"}


def test_a_failed_job_is_shown_with_its_stack_and_last_lines_and_retried_and_cloned(api: ApiServer) -> None:
    run = start_job(api.database, api.submit(device="0,1", max_retries=0))
    stack = "Thread 1 (most recent call first):\n  in all_reduce"
    told = {"cause": "hang", "message": "rank 1 made no progress for 60 s", "rank": 1}
    run.end(Outcome.FAILED, failure=told | {"traceback": stack, "log_tail": "epoch 1\nepoch 2\n"})
    job_id = str(run.job_id)

    shown = rankzero(api.url, "show", job_id).stdout
    assert "hang: rank 1 made no progress for 60 s" in shown
    assert shown.endswith(f"{stack}\nthe last lines of rank 1's log:\nepoch 1\nepoch 2\n")
    events = rankzero(api.url, "events", job_id).stdout.splitlines()
    assert [line.split("  ")[2].split(" outcome")[0] for line in events if "->" in line][-1] == "running -> failed"
    assert len(document(rankzero(api.url, "events", job_id, "--json"))) == len(events)
    assert rankzero(api.url, "retry", job_id).stdout == f"job {job_id} is queued\n"
    flags = ("--device", "0", "--set", "epochs=3", "-d", "--json")
    clone = document(rankzero(api.url, "clone", job_id, *flags))
    assert (clone["parent_id"], clone["spec"]["device"], clone["spec"]["train"]["epochs"]) == (run.job_id, "cuda:0", 3)
    assert [job["id"] for job in document(rankzero(api.url, "ls", "--parent", job_id, "--json"))] == [clone["id"]]
    again = rankzero(api.url, "retry", job_id)
    assert (again.returncode, "waits in the line already" in again.stderr) == (2, True)


def test_a_job_starts_from_a_checkpoint_of_another(api: ApiServer) -> None:
    run = start_job(api.database, api.submit(device="0,1", max_retries=0))
    run.add(checkpoint=saved("/runs/a.pt"))
    run.end(Outcome.SUCCEEDED)
    job_id = str(run.job_id)

    begun = document(rankzero(api.url, *DETACHED, "--start-from", job_id))
    resumed = document(rankzero(api.url, "clone", job_id, "--start-mode", "resume", "-d", "--json"))

    checkpoint = begun["parent_checkpoint_id"]
    assert begun["spec"]["start_from"] == {"job": run.job_id, "checkpoint": checkpoint, "mode": "weights"}
    assert resumed["spec"]["start_from"] == {"job": run.job_id, "checkpoint": checkpoint, "mode": "resume"}
    shown = rankzero(api.url, "show", str(begun["id"])).stdout
    assert f"begins with the weights of checkpoint {checkpoint} of job {job_id}" in shown


def test_a_job_is_planned_without_being_submitted(api: ApiServer) -> None:
    start_job(api.database, api.submit(device="0,1"))
    spec = "device: {count: 2}\ntrain: {model: resnet18, data: digits, batch: 64}\n"
    before = newest(api)

    flags = ("--device", "cuda:7", "--priority", "90", "--checkpoint-root", "/shared", "--json")
    planned = document(rankzero(api.url, "plan", "-", *flags, stdin=spec))
    shown = rankzero(api.url, "plan", "-", stdin=spec).stdout.splitlines()

    assert (planned["starts_now"], planned["world_size"], planned["batch_per_rank"]) == (False, 1, 64)
    assert "2 ranks, 32 samples of each batch on each" in shown
    assert any(line.startswith("could run on host-of-") for line in shown)
    assert newest(api) == before


def test_a_host_is_drained_taken_back_and_removed_once_it_is_gone(api: ApiServer) -> None:
    run = start_job(api.database, api.submit(device="0,1"))
    host = run.placement.host_name

    drained = rankzero(api.url, "drain", host, "--note", "new fan").stdout
    listed = rankzero(api.url, "hosts").stdout
    back = rankzero(api.url, "undrain", host).stdout

    assert drained.startswith(f"{host} is drained")
    assert "new fan" in drained
    assert drained.endswith(f"; jobs there: {run.job_id}\n")
    assert any(host in line and "new fan" in line for line in listed.splitlines())
    assert back == f"{host} takes jobs; jobs there: {run.job_id}\n"
    assert rankzero(api.url, "hosts", "release", host, "cuda:1").stdout == "cuda:1 was not in quarantine\n"
    taken = rankzero(api.url, "hosts", "quarantine", host, "cuda:1", "--reason", "lost 3 attempts").stdout
    assert taken.startswith("cuda:1 is handed out no more")
    assert "not handed out: lost 3 attempts" in rankzero(api.url, "hosts").stdout
    assert rankzero(api.url, "hosts", "release", host, "cuda:1").stdout == "cuda:1 is handed out again\n"
    assert "`rankzero hosts` lists" in rankzero(api.url, "hosts", "release", host, "cuda:9").stderr
    assert "drain the host instead" in rankzero(api.url, "hosts", "remove", host).stderr
    run.end(Outcome.SUCCEEDED)
    with api.database.session_scope() as session:
        session.execute(update(Host).where(Host.name == host).values(heartbeat_at=now(session) - timedelta(hours=1)))
    assert document(rankzero(api.url, "hosts", "remove", host, "--json")) == {"removed": host}


def test_quotas_are_set_shown_and_deleted(api: ApiServer) -> None:
    said = rankzero(api.url, "quotas", "set", "label", "team=a/b", "--max-devices", "4", "--share", "2").stdout
    listed = rankzero(api.url, "quotas").stdout
    (quota,) = api.http.get("/quotas").json()["items"]

    assert said == "label team=a/b: 4 devices, share 2\n"
    assert "team=a/b" in listed
    assert (quota["subject"], quota["max_devices"], quota["share"]) == ("team=a/b", 4, 2)
    assert rankzero(api.url, "quotas", "delete", "label", "team=a/b").stdout == "label team=a/b has no quota\n"
    assert rankzero(api.url, "quotas", "delete", "label", "team=a/b").returncode == 2


def newest(api: ApiServer) -> int:
    """The id of the newest job."""
    job_id = api.http.get("/jobs", params={"size": 1}).json()["items"][0]["id"]
    assert isinstance(job_id, int)
    return job_id
