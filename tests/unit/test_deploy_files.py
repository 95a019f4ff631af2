"""The files that put the service on machines, as their own programs read them where these are here."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from jobs.settings import Settings
from tests.deployment import COMPOSE, DEPLOY, ROOT, containers, folder_without, installed_by, unit, variables_of

PASSWORD = "of-the-tests"
BUILT = containers({"RANKZERO_POSTGRES_PASSWORD": PASSWORD})


def compose(*files: Path, variables: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
    """Run `docker compose config` on these files; skip the test where there is no such client."""
    client = ["docker", "compose"]
    if (
        shutil.which("docker") is None
        or subprocess.run([*client, "version"], check=False, capture_output=True).returncode
    ):
        pytest.skip("there is no docker compose here")
    named = [option for file in files for option in ("-f", str(file))]
    return subprocess.run(
        [*client, *named, "config", "--format", "json"],
        cwd=ROOT,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("more", [(), (DEPLOY / "gpu.yml",)], ids=["cpu", "gpu"])
def test_docker_compose_reads_the_files_as_these_tests_do(more: tuple[Path, ...]) -> None:
    read = compose(COMPOSE, *more, variables={"RANKZERO_POSTGRES_PASSWORD": PASSWORD})
    assert read.returncode == 0, read.stderr
    services = json.loads(read.stdout)["services"]
    assert services.keys() == BUILT.keys()
    for name, service in services.items():
        assert {key: BUILT[name].environment.get(key) for key in service.get("environment") or {}} == (
            service.get("environment") or {}
        )
        if service.get("command"):
            assert tuple(part.replace("$$", "$") for part in service["command"]) == BUILT[name].command
    assert bool(more) == ("deploy" in services["worker"])


def test_docker_compose_says_what_to_do_without_a_password(tmp_path: Path) -> None:
    refused = compose(COMPOSE, variables={"COMPOSE_ENV_FILES": str(tmp_path)})
    assert refused.returncode != 0
    assert "set it in .env" in refused.stderr


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
@pytest.mark.parametrize("name", ["rankzero.service", "rankzero-api@.service", "rankzero-worker.service"])
def test_systemd_has_nothing_to_say_against_a_unit(name: str, tmp_path: Path) -> None:
    # It looks whether the programs are there.
    text = (DEPLOY / "systemd" / name).read_text().replace("/opt/rankzero/bin", str(Path(sys.executable).parent))
    file = tmp_path / name.replace("@", "@8001")
    file.write_text(text)
    looked = subprocess.run(
        ["systemd-analyze", "verify", file], capture_output=True, text=True, check=False, timeout=60
    )
    about_it = [line for line in looked.stderr.splitlines() if name.partition("@")[0].partition(".")[0] in line]
    assert (looked.returncode, about_it) == (0, [])


def test_the_unit_of_the_worker_starts_what_its_image_does_and_lets_runs_outlive_it() -> None:
    settings = unit("rankzero-worker.service")
    (command,) = settings["ExecStart"]
    assert tuple(command.replace("/opt/rankzero/bin/", "").split()) == BUILT["worker"].command
    assert (settings["KillMode"], settings["Delegate"], settings["OOMPolicy"]) == (["process"], ["yes"], ["continue"])
    assert "/etc/rankzero/rankzero.env" in settings["EnvironmentFile"]


def test_the_shared_settings_are_settings() -> None:
    names = {name.removeprefix("RANKZERO_").lower() for name in variables_of(DEPLOY / "rankzero.env")}
    assert names <= Settings.model_fields.keys()


def test_a_plain_installation_has_the_command_and_the_client(tmp_path: Path) -> None:
    installed = folder_without(installed_by(()), tmp_path / "installed")
    environment = os.environ | {"PYTHONPATH": str(installed), "RANKZERO_URL": "http://127.0.0.1:9"}
    for command, said in {
        ("-m", "rankzero.cli", "ls"): "no service at http://127.0.0.1:9",
        ("-m", "rankzero.cli", "up"): "pip install 'rankzero[embedded]'",
        ("-c", "from rankzero import Client; Client().hosts()"): "UnreachableError",
    }.items():
        ran = subprocess.run(
            [sys.executable, *command], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert ran.returncode != 0
        assert said in ran.stderr
