"""The doctor: what it finds of a service that is well, and of everything that may be wrong with one."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text, update

from jobs import doctor, sealing
from jobs.database import Database, now
from jobs.doctor import Finding, Verdict, judge_clock
from jobs.settings import get_settings
from jobs.store.hosts import DeviceInfo
from jobs.tables import Host
from rankzero.cli import doctor as command
from tests.api_server import NO_BROKER, ApiServer
from tests.integration.command import document, rankzero, rankzero_process
from tests.integration.conftest import copy_of_sqlite
from tests.integration.running_job import start_job
from tests.integration.scripted_server import Scripted, scripted_server
from tests.ports import PortClaim
from tests.servers import ValkeyServer
from worker import doctor as host_doctor
from worker import host


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory, migrated_sqlite_template: Path) -> Iterator[ApiServer]:
    folder = tmp_path_factory.mktemp("api")
    # No worker is there to say that its hosts are alive.
    with ApiServer(copy_of_sqlite(migrated_sqlite_template, folder), folder, host_timeout_s=1800) as server:
        yield server


@contextmanager
def settings(**values: object) -> Iterator[None]:
    """This process with these settings."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [each for each in os.environ if each.startswith("RANKZERO_")]:
            patch.delenv(name)
        for name, value in values.items():
            patch.setenv(f"RANKZERO_{name.upper()}", str(value))
        get_settings.cache_clear()
        yield
    get_settings.cache_clear()


def found(**values: object) -> dict[str, Finding]:
    """What the doctor of a process with these settings finds, by check."""
    with settings(**{"broker_url": NO_BROKER} | values):
        return {each.check: each for each in doctor.examine()}


def test_a_database_with_this_version_s_schema_is_well(database_url: str, tmp_path: Path) -> None:
    sealing.make_key(tmp_path / "key")
    told = found(database_url=database_url, key_file=tmp_path / "key")
    assert {check: each.verdict for check, each in told.items()} == {
        "versions": Verdict.OK,
        "database": Verdict.OK,
        "schema": Verdict.OK,
        "clock": Verdict.OK,
        "broker": Verdict.WARN,
        "key": Verdict.OK,
    }
    assert told["broker"].to_do is not None


def test_a_schema_that_is_behind_or_ahead_says_which_way_out(database_url: str) -> None:
    database = Database(database_url)
    with database.session_scope() as session:
        session.execute(text("UPDATE alembic_version SET version_num = 'of_a_later_release'"))
    ahead = found(database_url=database_url)["schema"]
    with database.session_scope() as session:
        session.execute(text("DELETE FROM alembic_version"))
    behind = found(database_url=database_url)["schema"]
    database.dispose()

    assert (ahead.verdict, behind.verdict) == (Verdict.BAD, Verdict.BAD)
    assert "of_a_later_release" in ahead.seen
    assert ahead.to_do == "a later release has upgraded it: install that one here"
    assert behind.to_do == "python -m jobs.database upgrade"


def test_a_database_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    told = found(database_url=f"sqlite:///{tmp_path}/none/rankzero.db")
    assert told["database"].verdict == Verdict.BAD
    assert not (tmp_path / "none").exists()
    assert "schema" not in told


def test_a_database_that_does_not_answer_is_named_without_its_password() -> None:
    claim = PortClaim()
    told = found(database_url=f"postgresql+psycopg://ann:s3cr3t@127.0.0.1:{claim.port}/rankzero")["database"]
    claim.release()
    assert told.verdict == Verdict.BAD
    assert "s3cr3t" not in told.seen
    assert f"127.0.0.1:{claim.port}" in told.seen


def test_settings_that_are_wrong_are_all_that_is_told() -> None:
    with settings(tick_s="soon"):
        told = list(host_doctor.examine())
    assert [each.check for each in told] == ["versions", "settings"]
    assert "RANKZERO_TICK_S=soon" in told[-1].seen


def test_a_key_that_others_may_read_is_bad_and_none_is_a_warning(tmp_path: Path) -> None:
    sealing.make_key(tmp_path / "key")
    (tmp_path / "key").chmod(0o644)
    url = f"sqlite:///{tmp_path}/rankzero.db"
    assert found(database_url=url, key_file=tmp_path / "key")["key"].verdict == Verdict.BAD
    assert found(database_url=url)["key"].verdict == Verdict.WARN


@pytest.mark.parametrize(
    ("ahead_s", "verdict"),
    [(0.4, Verdict.OK), (-1.9, Verdict.OK), (5, Verdict.WARN), (-59, Verdict.WARN), (3600, Verdict.BAD)],
)
def test_a_clock_is_judged_by_how_far_it_is_off(ahead_s: float, verdict: Verdict) -> None:
    told = judge_clock(ahead_s)
    assert told.verdict == verdict
    assert ("ahead of" if ahead_s > 0 else "behind") in told.seen


def test_a_host_that_could_take_no_job_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # What torch is like, the whole command finds out below, once.
    monkeypatch.setattr(host_doctor, "TORCH", "raise ModuleNotFoundError('no torch')")
    (tmp_path / "file").touch()
    wanted: dict[str, Any] = {
        "database_url": f"sqlite:///{tmp_path}/rankzero.db",
        "broker_url": NO_BROKER,
        "run_root": tmp_path / "file" / "runs",
        "checkpoint_root": tmp_path / "file",
        "cpu_slots": 0,
    }
    with settings(**wanted):
        told = {each.check: each for each in host_doctor.examine()}
    with settings(**wanted | {"run_root": tmp_path / "runs", "min_free_bytes": 1 << 60}):
        full = {each.check: each for each in host_doctor.examine()}["disk"]

    assert (told["torch"].verdict, told["torch"].seen) == (Verdict.BAD, "ModuleNotFoundError: no torch")
    assert [told[check].verdict for check in ("devices", "disk", "checkpoint root")] == [Verdict.BAD] * 3
    assert (full.verdict, full.to_do) == (Verdict.BAD, "make room")
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("torch", "verdict", "seen"),
    [
        ('["2.9.0", "13.0", 2, true]', Verdict.OK, "torch 2.9.0, CUDA 13.0, which sees all 2 GPUs"),
        ('["2.9.0", "13.0", 2, false]', Verdict.BAD, "torch 2.9.0, CUDA 13.0, which sees 0 of 2 GPUs"),
        ('["2.9.0+cpu", null, 0, false]', Verdict.BAD, "torch 2.9.0+cpu, built without CUDA, which sees 0 of 2 GPUs"),
    ],
)
def test_a_torch_that_sees_fewer_gpus_than_the_driver_is_bad(
    torch: str, verdict: Verdict, seen: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpus = [DeviceInfo(f"cuda:{index}", "cuda", model="H200") for index in range(2)]
    monkeypatch.setattr(host, "find_devices", lambda _settings: gpus)
    monkeypatch.setattr(host_doctor, "TORCH", f"print('a line of its own'); print({torch!r})")
    with settings(database_url=f"sqlite:///{tmp_path}/rankzero.db", broker_url=NO_BROKER, run_root=tmp_path):
        told = {each.check: each for each in host_doctor.examine()}
    assert told["devices"].seen == "2 CUDA (H200)"
    assert (told["torch"].verdict, told["torch"].seen) == (verdict, seen)


def test_the_command_tells_of_service_and_machine_in_lines(api: ApiServer, valkey_session: ValkeyServer) -> None:
    run = start_job(api.database, api.submit(device="0,1"))
    here = {
        "RANKZERO_DATABASE_URL": api.database.url.render_as_string(hide_password=False),
        "RANKZERO_BROKER_URL": valkey_session.url,
        "RANKZERO_SIMULATED_DEVICES": "2",
        "RANKZERO_RUN_ROOT": str(api.log.parent / "runs"),
        "CUDA_VISIBLE_DEVICES": "",
    }

    done = rankzero_process(api.url, "doctor", **here)
    lines = done.stdout.splitlines()
    verdicts = {line[6:22].strip(): line[:4].strip() for line in lines if line not in ("service", "this machine")}

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    checks = ["service", "clock", "database", "broker", "login", f"host {run.placement.host_name}"]
    checks += ["versions", "schema", "key", "devices", "torch", "disk", "checkpoint root"]
    assert verdicts == dict.fromkeys(checks, "ok") | {"key": "warn"}, done.stdout
    assert any("2 CUDA (simulated)" in line for line in lines)


def test_the_folder_of_rankzero_up_is_looked_at_without_what_only_a_host_has(
    api: ApiServer, tmp_path: Path, migrated_sqlite_template: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = copy_of_sqlite(migrated_sqlite_template, tmp_path)
    sealing.make_key(tmp_path / "key")
    monkeypatch.setattr(command, "HOST_PARTS", ("a_package_that_is_not_installed",))

    told = rankzero(api.url, "doctor", "--data-dir", str(tmp_path), "--json", RANKZERO_DATABASE_URL="of:nothing")
    checks = json.loads(told.stdout)["checks"]
    here = {each["check"]: each for each in checks[[each["check"] for each in checks].index("versions") :]}

    assert set(here) == {"versions", "database", "schema", "clock", "broker", "key"}
    assert here["database"]["seen"].startswith(url)
    assert {check for check, each in here.items() if each["verdict"] != "ok"} == {"broker"}
    assert f"redis+socket://{tmp_path}" in here["broker"]["seen"]


def test_the_command_ends_with_1_where_something_is_bad(tmp_path: Path) -> None:
    claim = PortClaim()
    silent = rankzero(f"http://127.0.0.1:{claim.port}", "doctor", "--json", XDG_DATA_HOME=str(tmp_path))
    claim.release()

    assert silent.returncode == 1
    service, parts = json.loads(silent.stdout)["checks"]
    assert (service["check"], service["verdict"]) == ("service", "bad")
    assert "rankzero up" in service["seen"]
    assert (parts["check"], parts["verdict"]) == ("parts", "ok")


@pytest.mark.parametrize("body", [b"<html>hello</html>", b"[]"])
def test_what_answers_and_is_no_service_of_ours_is_said_to_be_none(body: bytes, tmp_path: Path) -> None:
    with scripted_server(Scripted(200, {}, body)) as server:
        told = rankzero(server.url, "doctor", "--json", XDG_DATA_HOME=str(tmp_path))

    assert told.returncode == 1
    (service, *_) = json.loads(told.stdout)["checks"]
    assert (service["check"], service["verdict"]) == ("service", "bad")
    assert service["seen"] == f"what answers at {server.url} is no RankZero service"


def test_hosts_that_take_no_jobs_are_told_with_the_way_back(api: ApiServer, tmp_path: Path) -> None:
    drained, lost = (start_job(api.database, api.submit(device="0,1")).placement.host_name for _ in range(2))
    rankzero(api.url, "drain", drained, "--note", "new fan")
    with api.database.session_scope() as session:
        session.execute(update(Host).where(Host.name == lost).values(heartbeat_at=now(session) - timedelta(hours=1)))

    told = document(rankzero(api.url, "doctor", "--json", XDG_DATA_HOME=str(tmp_path)))
    hosts = {each["check"]: each for each in told["checks"]}

    assert told["well"] is True
    assert hosts[f"host {drained}"]["verdict"] == "warn"
    assert hosts[f"host {drained}"]["to_do"] == f"rankzero undrain {drained} takes it back"
    assert "out of contact" in hosts[f"host {lost}"]["seen"]
