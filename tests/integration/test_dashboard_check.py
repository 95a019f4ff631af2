"""`python -m api.web.build` with `--check` and `--format`: what it has npm do, and what it says of that."""

import os

import pytest

from api import bundle
from api.web.build import MOST_BYTES, Build
from api.web.node import BuildError
from tests.integration.small_dashboard import Clone


def test_its_sources_are_formatted_by_npm(built: Clone) -> None:
    assert built.build("--format").returncode == 0
    assert built.npm_calls == ["ci", "build", "format"]


def test_everything_is_checked_against_the_schema_of_the_api(
    clone: Clone, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(clone.install_node("22.12.0").parent))
    Build(clone.web, clone.static).check()
    assert clone.npm_calls == ["ci", "types", "typecheck", "lint", "format:check", "test", "build"]
    assert '"/jobs/{job_id}"' in (clone.web / "openapi.json").read_text()
    size = bundle.read(clone.static).transferred
    assert capsys.readouterr().out.endswith(f"The dashboard is {size:,} bytes, compressed, of at most 350,000.\n")


def test_a_check_that_fails_is_named_once_the_others_have_run(
    clone: Clone, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(clone.install_node("22.12.0").parent))
    monkeypatch.setenv("FAILING", "lint")
    monkeypatch.setenv("SAYING", "Page.tsx:3: an unused name")
    with pytest.raises(BuildError, match="fails its checks: lint; its output is above"):
        Build(clone.web, clone.static).check()
    assert clone.npm_calls == ["ci", "types", "typecheck", "lint", "format:check", "test", "build"]
    assert "Page.tsx:3: an unused name" in capsys.readouterr().err


def test_a_dashboard_that_is_too_large_fails_the_check(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(clone.install_node("22.12.0").parent))
    (clone.web / "src" / "main.ts").write_bytes(os.urandom(MOST_BYTES))
    with pytest.raises(BuildError, match="fails its checks: size"):
        Build(clone.web, clone.static).check()
