"""Builds the dashboard into `api/static`, where it is missing or older than its sources, and checks those.

python -m api.web.build [--check | --format] [--node-optional]
"""

import argparse
import fcntl
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from api import bundle
from api.bundle import STATIC, Bundle, BundleError
from api.web import inputs
from api.web.node import BuildError, Node, NoNodeError, find_node

MOST_BYTES = 350_000
"""What a browser may load of the dashboard, compressed: more is slow on a phone."""
CHECKS = {
    "types": "types",
    "type check": "typecheck",
    "lint": "lint",
    "formatting": "format:check",
    "tests": "test",
}
"""Each check by its script in package.json. The first writes the types of the API's schema, which the others read."""
_AWAY = re.compile(
    r"\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|E[A-Z]+TIMEOUT|FETCH_ERROR)\b"
)
"""By which npm tells that it has not reached the index of its packages."""
_QUIET = ("--no-audit", "--no-fund", "--no-progress")


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the arguments say and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m api.web.build", description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--node-optional", action="store_true", help="only warn where it cannot be built: the service runs without it"
    )
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--check", action="store_true", help="check its types, style, tests and size as well")
    kind.add_argument("--format", action="store_true", help="put its sources into the form that --check asks for")
    options = parser.parse_args(arguments)
    build = Build()
    try:
        with _turn(build.web):
            if options.check:
                build.check()
            elif options.format:
                build.format()
            else:
                build.make()
    except BuildError as error:
        if options.node_optional:
            print(f"The service runs without its newest dashboard: {error}", file=sys.stderr)
            return 0
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


@dataclass(frozen=True)
class Build:
    """The dashboard's sources, and the folder that they are built into."""

    web: Path = inputs.WEB
    static: Path = STATIC

    def make(self) -> Bundle:
        """Build it, unless what is there was built from these very sources; return it. Raises BuildError."""
        sources = inputs.digest(self.web)
        there = self._there()
        reason = self._why_stale(there, sources)
        if there is not None and reason is None:
            print("The dashboard is built already.")
            return there
        print(f"Building the dashboard ({reason}) with {self._node.name}")
        self._install_packages()
        new, old = (self.static.with_name(f".static-{name}") for name in ("new", "old"))
        for left_over in (new, old):
            shutil.rmtree(left_over, ignore_errors=True)
        self._run("bundle", "run", "build", RANKZERO_STATIC=str(new))
        try:
            bundle.complete(new, inputs=sources, node=self._node.version[0])
            if self.static.exists():
                self.static.rename(old)
            new.rename(self.static)
            made = bundle.read(self.static)
        except (OSError, BundleError) as error:
            raise BuildError(f"what was built cannot be put into {self.static}: {error}") from error
        shutil.rmtree(old, ignore_errors=True)
        return made

    def check(self) -> None:
        """Run every check, also after one that has failed, and build. Raises BuildError."""
        self._install_packages()
        self._write_schema()
        failed = [name for name, script in CHECKS.items() if not self._passes(name, script)]
        size = self.make().transferred
        print(f"The dashboard is {size:,} bytes, compressed, of at most {MOST_BYTES:,}.")
        if size > MOST_BYTES:
            failed.append("size")
        if failed:
            raise BuildError(f"the dashboard fails its checks: {', '.join(failed)}; its output is above")

    def format(self) -> None:
        """Format its sources. Raises BuildError."""
        self._install_packages()
        self._run("formatting", "run", "format")

    @cached_property
    def _node(self) -> Node:
        return find_node(self.web)

    def _there(self) -> Bundle | None:
        try:
            return bundle.read(self.static)
        except BundleError:
            return None

    def _why_stale(self, there: Bundle | None, sources: str) -> str | None:
        """Say in words why what is there is not to be used; None where it is."""
        if there is None:
            return "there is none"
        if there.inputs != sources:
            return "its sources have changed"
        try:
            major = self._node.version[0]
        except NoNodeError:
            return None  # nothing could build it better
        return None if there.node == major else f"it was built by Node {there.node}"

    def _install_packages(self) -> None:
        """Install what package-lock.json names, unless that is what was installed last."""
        wanted = inputs.digest_of_packages(self.web)
        stamp = self.web / "node_modules" / ".installed"
        if stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted:
            return
        print("  npm installs its packages, which takes about a minute", flush=True)
        away = self._index_away()
        # Without the scripts that packages bring for this: none is needed, and nobody has read them.
        options = ("--ignore-scripts", "--offline" if away else "--prefer-offline", *_QUIET)
        try:
            self._run("packages", "ci", *options, is_shown=not away)
        except BuildError as error:
            if away is None:
                raise
            raise BuildError(
                f"npm cannot reach the index of its packages ({away}), and has not kept all of them. Name a mirror in "
                "the variable npm_config_registry, or a proxy in HTTPS_PROXY, and run this again"
            ) from error
        stamp.parent.mkdir(exist_ok=True)
        stamp.write_text(wanted, encoding="utf-8")

    def _index_away(self) -> str | None:
        """Return by which error npm does not reach the index of its packages; None where that answers, in any way.

        It is asked once. To install, npm asks it for each of some hundred packages, which takes minutes to fail.
        """
        patience = ("--fetch-retries=1", "--fetch-retry-mintimeout=500", "--fetch-timeout=10000")
        asked = self._node.run_npm("ping", *patience, folder=self.web)
        found = _AWAY.search(asked.stdout) if asked.returncode else None
        return None if found is None else found[0]

    def _write_schema(self) -> None:
        from api.app import create_app

        text = json.dumps(create_app().openapi(), indent=1)
        (self.web / "openapi.json").write_text(text, encoding="utf-8")

    def _passes(self, name: str, script: str) -> bool:
        try:
            self._run(name, "run", script)
        except BuildError:
            return False
        return True

    def _run(self, name: str, *arguments: str, is_shown: bool = True, **environment: str) -> None:
        """Run npm; say what for, and how long it took. Raises BuildError, after the output if that is to be shown."""
        print(f"  {name:<11}", end="", flush=True)
        began = time.monotonic()
        done = self._node.run_npm(*arguments, folder=self.web, **environment)
        took = f"{time.monotonic() - began:5.1f} s"
        if done.returncode == 0:
            print(took)
            return
        print(f"{took}, failed", flush=True)
        if is_shown:
            print(done.stdout.rstrip(), file=sys.stderr)
        raise BuildError(f"npm {' '.join(arguments[:2])} failed in {self.web}, with the output above")


@contextmanager
def _turn(folder: Path) -> Iterator[None]:
    """Wait until nobody else builds from this folder, and keep others waiting."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Waiting for another build of the dashboard", flush=True)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


if __name__ == "__main__":
    sys.exit(main())
