"""The command `rankzero` as a process."""

import json
import os
import subprocess
import sys
from typing import Any

DETACHED = ("submit", "--model", "resnet18", "--data", "digits", "-d", "--json")


def rankzero(url: str, *arguments: str, stdin: str | None = None) -> "subprocess.CompletedProcess[str]":
    """Run it against the service at `url`."""
    return subprocess.run(
        [sys.executable, "-m", "rankzero.cli", *arguments],
        env=os.environ | {"RANKZERO_URL": url, "COLUMNS": "200"},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def document(done: "subprocess.CompletedProcess[str]") -> Any:
    """The one JSON document on standard output."""
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
