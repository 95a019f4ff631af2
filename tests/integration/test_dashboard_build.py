"""`python -m api.web.build`: when it builds, and what it says where it cannot.

All but the last test build a dashboard of a few lines in a folder of their own (`tests.integration.small_dashboard`).
"""

import fcntl
import os
import re
import shutil
from pathlib import Path

import pytest

from api import bundle
from api.bundle import STATIC
from api.dashboard import MEDIA_TYPES
from api.web.build import MOST_BYTES, main
from tests.integration.small_dashboard import Clone


def test_the_first_build_installs_the_packages_and_says_what_it_does(clone: Clone) -> None:
    clone.install_node("22.12.0")
    done = clone.build()
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(
        r"Building the dashboard \(there is none\) with Node 22\.12\.0 \(the system's\)\n"
        r"  npm installs its packages, which takes about a minute\n"
        r"  packages +\d+\.\d s\n  bundle +\d+\.\d s\n",
        done.stdout,
    )
    assert clone.npm_calls == ["ci", "build"]
    assert bundle.read(clone.static).files["assets/index-1f.js"].content == b"export const words = 'of the dashboard'"
    assert {path.name for path in clone.static.parent.iterdir()} >= {"static", "web"}
    assert not list(clone.static.parent.glob(".static-*"))


def test_what_is_built_already_is_not_built_again(built: Clone) -> None:
    done = built.build()
    assert (done.returncode, done.stdout, done.stderr) == (0, "The dashboard is built already.\n", "")
    assert built.npm_calls == ["ci", "build"]


@pytest.mark.parametrize(
    "changed", ["src/main.ts", "src/added/Page.tsx", "index.html", "public/favicon.svg", "vite.config.ts"]
)
def test_a_change_of_what_is_built_has_it_built_again_with_the_packages_that_are_there(
    built: Clone, changed: str
) -> None:
    built.write(changed, "<head>changed")
    assert built.build().stdout.startswith("Building the dashboard (its sources have changed)")
    assert built.npm_calls == ["ci", "build", "build"]
    assert built.build().stdout == "The dashboard is built already.\n"


def test_a_source_that_is_gone_or_renamed_has_it_built_again(built: Clone) -> None:
    (built.web / "src" / "main.ts").rename(built.web / "src" / "other.ts")
    shutil.copy(built.web / "src" / "other.ts", built.web / "src" / "main.ts")
    built.build()
    (built.web / "src" / "other.ts").unlink()
    built.build()
    assert built.npm_calls == ["ci", "build", "build", "build"]


@pytest.mark.parametrize(
    "changed",
    [
        "src/main.test.ts",
        "src/parts/Page.test.tsx",
        "src/testing/setup.ts",
        "src/api/schema.d.ts",
        "openapi.json",
        "README.md",
        "eslint.config.js",
        ".prettierrc.json",
        "node_modules/added/index.js",
        "__pycache__/build.pyc",
    ],
)
def test_a_change_of_what_is_no_part_of_it_has_nothing_built(built: Clone, changed: str) -> None:
    built.write(changed, "changed")
    assert built.build().stdout == "The dashboard is built already.\n"


def test_other_versions_of_packages_are_installed_before_it_is_built_again(built: Clone) -> None:
    built.write("package-lock.json", '{"changed": true}')
    assert built.build().returncode == 0
    assert built.npm_calls == ["ci", "build", "ci", "build"]


def test_packages_that_were_not_installed_to_the_end_are_installed_again(built: Clone) -> None:
    built.write("package-lock.json", '{"changed": true}')
    assert built.build(FAILING="ci", SAYING="killed").returncode == 1
    assert built.build().returncode == 0
    assert built.npm_calls == ["ci", "build", "ci", "ci", "build"]


@pytest.mark.parametrize("damaged", ["index.html", "assets/index-1f.js", "build.json"])
def test_a_build_that_lacks_a_file_is_built_again(built: Clone, damaged: str) -> None:
    (built.static / damaged).unlink()
    assert "there is none" in built.build().stdout
    bundle.read(built.static)


def test_a_build_that_fails_shows_why_and_leaves_the_one_before_in_place(built: Clone) -> None:
    before = bundle.read(built.static)
    built.write("src/main.ts", "const words =")
    done = built.build(FAILING="build", SAYING="src/main.ts:1: unexpected end of file")
    assert done.returncode == 1
    assert done.stdout.endswith(" s, failed\n")
    assert done.stderr.splitlines() == [
        "src/main.ts:1: unexpected end of file",
        f"error: npm run build failed in {built.web}, with the output above",
    ]
    assert bundle.read(built.static) == before


def test_a_page_that_leaves_no_place_for_its_address_is_refused(built: Clone) -> None:
    before = bundle.read(built.static)
    built.write("index.html", "<!doctype html><body>")
    done = built.build()
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert "<head>" in done.stderr
    assert bundle.read(built.static) == before


def test_what_a_build_has_left_that_was_killed_is_gone_after_the_next_one(built: Clone) -> None:
    for name in (".static-new", ".static-old"):
        (built.static.with_name(name) / "assets").mkdir(parents=True)
    built.write("src/main.ts", "changed")
    assert built.build().returncode == 0
    assert not list(built.static.parent.glob(".static-*"))


def test_a_build_waits_for_the_one_before_it(clone: Clone) -> None:
    clone.install_node("22.12.0")
    descriptor = os.open(clone.web, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        build = clone.start()
        assert build.stdout is not None
        assert build.stdout.readline() == "Waiting for another build of the dashboard\n"
        assert clone.npm_calls == []
    finally:
        os.close(descriptor)
    build.communicate(timeout=60)
    assert (build.returncode, clone.npm_calls) == (0, ["ci", "build"])


def test_of_several_builds_at_once_one_builds(clone: Clone) -> None:
    clone.install_node("22.12.0")
    builds = [clone.start() for _ in range(4)]
    said = [build.communicate(timeout=60)[0] for build in builds]
    assert [build.returncode for build in builds] == [0] * 4
    assert sum("The dashboard is built already." in each for each in said) == 3
    assert clone.npm_calls == ["ci", "build"]


@pytest.mark.timeout(600)
def test_the_real_one_is_built_and_asks_a_browser_for_nothing_that_the_service_forbids() -> None:
    assert main([]) == 0
    found = bundle.read(STATIC)
    assert {Path(name).suffix for name in found.files} <= MEDIA_TYPES.keys()
    page = re.sub(r"<!--.*?-->", "", found.files["index.html"].content.decode())
    assert "<base" not in page
    assert "//" not in page, "an address elsewhere"
    assert not re.findall(r"<script[^>]*>[^<]", page), "an inline script, which the policy forbids"
    assert not re.findall(r"\bon\w+=", page)
    addresses = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert addresses
    assert all(address.removeprefix("./") in found.files for address in addresses)
    assert found.transferred <= MOST_BYTES
