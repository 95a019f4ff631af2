"""The settings: read from the environment, checked at the start, and documented from their own docstrings."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from jobs.settings import Settings, get_settings
from jobs.settings_page import render

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"


def test_the_page_of_settings_is_what_the_code_says() -> None:
    assert PAGE.read_text() == render(), "make it anew: python -m jobs.settings_page > docs/settings.md"


def test_the_page_can_be_made_from_the_command_line() -> None:
    answer = subprocess.run([sys.executable, "-m", "jobs.settings_page"], capture_output=True, text=True, check=True)

    assert answer.stdout == render()


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_setting_says_what_it_is(name: str) -> None:
    said = Settings.model_fields[name].description

    assert said is not None
    assert said.endswith(".")
    assert f"| `RANKZERO_{name.upper()}` |" in render()


def test_a_setting_is_read_from_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKZERO_LEASE_S", "30")
    monkeypatch.setenv("RANKZERO_CPU_SLOTS", "3")

    settings = Settings()

    assert (settings.lease_s, settings.cpu_slots) == (30, 3)


def test_a_variable_that_is_no_setting_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKZERO_URL", "http://127.0.0.1:8000")  # the client's

    Settings()


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("RANKZERO_LEASE_S", "0"),
        ("RANKZERO_LEASE_S", "soon"),
        ("RANKZERO_TICK_S", "-1"),
        ("RANKZERO_HOST_NAME", ""),
        ("RANKZERO_HOST_NAME", "a,b"),  # its worker would read two queues, and neither is its own
        ("RANKZERO_HOST_NAME", "a/b"),  # no path of the API could name it
        ("RANKZERO_CPU_SLOTS", "-1"),
        ("RANKZERO_WEBHOOK_ALLOW", "10.0.0.0/33"),
        ("RANKZERO_SIMULATED_DEVICES", "2000"),
    ],
)
def test_a_value_that_cannot_be_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, variable: str, value: str) -> None:
    monkeypatch.setenv(variable, value)

    with pytest.raises(ValidationError, match=variable.removeprefix("RANKZERO_").lower()):
        Settings()


def test_a_heartbeat_that_is_too_slow_for_its_lease_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"heartbeat_s: 5\.0 must be at most a third of lease_s"):
        Settings(lease_s=12)

    assert Settings(lease_s=15).heartbeat_s == 5


@pytest.mark.parametrize("program", [["worker"], ["api"], ["jobs.database", "upgrade"]], ids=" ".join)
@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"LEASE_S": "1"}, "heartbeat_s: 5.0 must be at most a third of lease_s (1.0)"),
        ({"LEASE_S": "soon", "TICK_S": "0"}, "RANKZERO_LEASE_S=soon: "),
        ({"LEASE_S": "soon", "TICK_S": "0"}, "RANKZERO_TICK_S=0: "),
    ],
)
def test_a_program_with_settings_that_cannot_be_ends_with_one_line_that_names_them(
    tmp_path: Path, program: list[str], variables: dict[str, str], said: str
) -> None:
    environment = os.environ | {f"RANKZERO_{name}": value for name, value in variables.items()}
    command = [sys.executable, "-m", *program]

    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert done.stderr.startswith("rankzero")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql+psycopg://me:hidden@127.0.0.1:1/rankzero", "Connection refused"),
        ("nonsense", "is neither postgresql+psycopg://… nor sqlite:///file"),
        ("oracledb2://127.0.0.1/rankzero", "is neither postgresql+psycopg://… nor sqlite:///file"),
    ],
)
def test_the_schema_of_a_database_that_cannot_be_reached_is_refused_in_one_line(url: str, said: str) -> None:
    environment = os.environ | {"RANKZERO_DATABASE_URL": url}
    command = [sys.executable, "-m", "jobs.database", "upgrade"]

    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert said in done.stderr
    assert "RANKZERO_DATABASE_URL" in done.stderr
    assert "hidden" not in done.stderr


def test_the_run_root_is_absolute_wherever_the_process_starts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))

    assert Settings().run_root == tmp_path / "runs"
    assert Settings(run_root=Path("~/training")).run_root == tmp_path / "training"


def test_the_run_root_is_the_folder_that_the_system_finds_behind_dots_and_links(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "disk/home").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "disk/home")
    monkeypatch.chdir(tmp_path)

    assert Settings(run_root=Path("link/../runs")).run_root == tmp_path / "disk/runs"
    assert Settings(run_root=Path("link/runs")).run_root == tmp_path / "link/runs"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("shared", "{cwd}/shared"),
        ("a/../shared", "{cwd}/shared"),
        ("/mnt/shared", "/mnt/shared"),
        ("s3://bucket/a/../b", "s3://bucket/a/../b"),
    ],
)
def test_a_checkpoint_root_is_an_absolute_folder_or_a_url_as_it_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, written: str, meant: str
) -> None:
    monkeypatch.chdir(tmp_path)

    assert Settings(checkpoint_root=written).checkpoint_root == meant.format(cwd=tmp_path)


def test_a_checkpoint_root_of_no_known_scheme_is_refused() -> None:
    with pytest.raises(ValidationError, match="no scheme that fsspec knows"):
        Settings(checkpoint_root="foo://x/y")


def test_a_process_reads_its_settings_once() -> None:
    assert get_settings() is get_settings()


def test_settings_are_frozen() -> None:
    with pytest.raises(ValidationError):
        Settings().lease_s = 1  # type: ignore[misc]  # the mistake itself
