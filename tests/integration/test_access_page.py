"""docs/access.md: every command on the page does what the page says, in the order in which it has them."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.children import start_child
from tests.ports import PortClaim
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "access.md"
STARTS = "python -m api --host 0.0.0.0 --port 8000"


def test_every_command_of_the_page_of_access_works(tmp_path: Path) -> None:
    claim = PortClaim()
    url = f"http://127.0.0.1:{claim.port}"
    log = tmp_path / "api.log"
    environment = os.environ | {
        "HOME": str(tmp_path),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "RANKZERO_DATABASE_URL": f"sqlite:///{tmp_path / 'rankzero.db'}",
        "RANKZERO_BROKER_URL": "redis+socket:///nonexistent/broker",
        "RANKZERO_ACCESS": "tokens",
        "RANKZERO_KEY_FILE": str(tmp_path / "rankzero.key"),
    }
    commands = re.findall(r"^\$ (.+)$", PAGE.read_text(), re.MULTILINE)
    assert commands.count(STARTS) == 1
    server = None
    try:
        for command in commands:
            if command == STARTS:
                started = [sys.executable, "-m", "api", "--port", str(claim.port)]
                server = start_child(started, log=log, folder=tmp_path, environment=environment)
                wait_until(
                    lambda: subprocess.run(["curl", "-sf", f"{url}/healthz"], check=False).returncode == 0,
                    timeout_s=60,
                    what=lambda: f"the API to answer; its log:\n{log.read_text()}",
                )
                continue
            if "DATABASE_URL" in command:
                continue  # names a folder of somebody else's machine
            # What a command leaves in its shell is there for the next one.
            script = f"set -eo pipefail\n{command.replace('http://gpu-box:8000', url)}\nenv -0 > env"
            done = subprocess.run(
                ["bash", "-ac", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}\n{log.exists() and log.read_text()}"
            environment = dict(pair.split("=", 1) for pair in (tmp_path / "env").read_text().split("\0") if "=" in pair)
        assert re.fullmatch(r"rz_[A-Za-z0-9_-]{43}", environment["TOKEN"])
        assert environment["TOKEN"] not in log.read_text()
    finally:
        if server is not None:
            server.terminate()
            server.wait(timeout=20)
        claim.release()
