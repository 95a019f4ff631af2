"""The migrations: upgrading an empty database gives exactly the tables that `jobs.tables` declares, on both engines."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, Inspector, column, create_engine, inspect, select, table, text

from jobs.database import Database, upgrade
from jobs.store import buckets
from jobs.tables import Base, DeviceRow, Job, MetricBucket, SubmissionKey
from tests.servers import PostgresServer
from tests.waiting import wait_until

PROCESSES = 4


@pytest.fixture
def upgraded(empty_database_url: str) -> Iterator[Engine]:
    """An empty database brought to the newest revision."""
    upgrade(empty_database_url)
    engine = create_engine(empty_database_url)
    yield engine
    engine.dispose()


@pytest.fixture
def declared(upgraded: Engine, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    """Another database of the same engine, with the tables made straight from the metadata."""
    if upgraded.dialect.name == "sqlite":
        engine = create_engine(f"sqlite:///{tmp_path / 'declared.db'}")
        Base.metadata.create_all(engine)
        yield engine
        engine.dispose()
        return
    server = request.getfixturevalue("postgres")
    assert isinstance(server, PostgresServer)
    url = server.create_database()
    engine = create_engine(url)
    Base.metadata.create_all(engine)
    yield engine
    engine.dispose()
    server.drop_database(url)


def script() -> ScriptDirectory:
    config = Config()
    config.set_main_option("script_location", "migrations:")
    return ScriptDirectory.from_config(config)


def test_alembic_finds_no_difference_between_an_upgraded_database_and_the_metadata(upgraded: Engine) -> None:
    with upgraded.connect() as connection:
        options = {"compare_type": True, "compare_server_default": True}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, Base.metadata) == []


def test_constraints_and_indexes_are_those_that_the_metadata_makes(upgraded: Engine, declared: Engine) -> None:
    """Alembic compares neither checks nor the conditions of partial indexes; the database itself can be asked."""
    assert described(inspect(upgraded)) == described(inspect(declared))


def test_the_description_sees_a_check_that_differs(declared: Engine) -> None:
    before = described(inspect(declared))
    checks = [check["text"] for check in before["jobs"]["checks"]]

    assert len(checks) == 2
    assert any("'starting'" in each for each in checks)
    assert any("IS NULL" in str(index).upper() for index in before["leases"]["indexes"])


def test_upgrading_twice_changes_nothing(empty_database_url: str) -> None:
    upgrade(empty_database_url)
    database = Database(empty_database_url)
    with database.session_scope() as session:
        before = session.execute(text("SELECT version_num FROM alembic_version")).all()

    upgrade(empty_database_url)

    with database.session_scope() as session:
        assert session.execute(text("SELECT version_num FROM alembic_version")).all() == before
        assert len(before) == 1
        assert session.scalars(select(Job)).all() == []
    database.dispose()


def test_an_upgrade_keeps_what_an_earlier_release_has_stored(empty_database_url: str) -> None:
    database = Database(empty_database_url)
    config = Config()
    config.set_main_option("script_location", "migrations:")
    with database.engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
        at = "2026-01-01 00:00:00"
        values = f"VALUES ('alpha', '{at}', '{at}', '1:1', '/runs')"
        connection.execute(text(f"INSERT INTO hosts (name, registered_at, heartbeat_at, worker, run_root) {values}"))
        columns = "host_name, name, kind, uuid, simulated, present"
        values = "VALUES ('alpha', 'cuda:0', 'cuda', 'GPU-a', false, true)"
        connection.execute(text(f"INSERT INTO devices ({columns}) {values}"))

    upgrade(empty_database_url)

    with database.session_scope() as session:
        devices = session.scalars(select(DeviceRow)).all()
    assert [(each.name, each.uuid, each.driver_index) for each in devices] == [("cuda:0", "GPU-a", None)]
    database.dispose()


def test_an_upgrade_makes_buckets_of_stored_metrics_and_keeps_the_keys_of_submissions(empty_database_url: str) -> None:
    database = Database(empty_database_url)
    config = Config()
    config.set_main_option("script_location", "migrations:")
    at = "2026-01-01 00:00:00"
    with database.engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0003")
        job = {"name": "a", "spec": "{}", "labels": "{}", "priority": 50, "max_retries": 3, "state": "running"}
        job |= {"intent": "run", "attempt": 2, "retries": 1, "created_at": at, "updated_at": at, "queued_at": at}
        insert(connection, "jobs", {"id": 1, "waits_from": at} | job)
        insert(connection, "submission_keys", {"key": "nightly", "digest": "0" * 64, "job_id": 1, "created_at": at})
        for attempt, steps in ((1, range(200)), (2, range(100, 150))):
            row = {"job_id": 1, "number": attempt, "created_at": at, "world_size": 1}
            insert(connection, "attempts", row)
            for step in steps:
                value = None if step == 7 else float(step * attempt % 50)
                row = {
                    "job_id": 1,
                    "attempt": attempt,
                    "name": "loss",
                    "step": step,
                    "epoch": 1,
                    "at": at,
                    "value": value,
                }
                insert(connection, "metrics", row)

    upgrade(empty_database_url)

    query = select(MetricBucket).order_by(MetricBucket.bucket)
    with database.session_scope() as session:
        upgraded = [vars_of(row) for row in session.scalars(query)]
        buckets.refresh(session, 1, [("loss", 0), ("loss", 199)])
    with database.session_scope() as session:
        assert [vars_of(row) for row in session.scalars(query)] == upgraded
    assert [row["count"] for row in upgraded] == [64, 64, 64, 8]
    assert (upgraded[0]["gap_step"], upgraded[1]["lowest_step"], upgraded[1]["highest_step"]) == (7, 100, 99)
    with database.session_scope() as session:
        assert session.scalars(select(SubmissionKey.made)).all() == ["jobs/1"]
    database.dispose()


def test_processes_that_upgrade_at_the_same_time_all_succeed(empty_database_url: str, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    code = (
        "import os, pathlib, sys\n"
        "from jobs.database import upgrade\n"
        "pathlib.Path(sys.argv[1] + f'.{os.getpid()}').touch()\n"
        "while not pathlib.Path(sys.argv[1]).exists(): pass\n"
        "upgrade(sys.argv[2])\n"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(gate), empty_database_url], stderr=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for _ in range(PROCESSES)
    ]
    try:
        wait_until(
            lambda: len(list(tmp_path.glob("gate.*"))) == PROCESSES or any(each.poll() for each in processes),
            timeout_s=60,
            what="every process to stand at the gate",
        )
        gate.touch()
        results = [(process.communicate(timeout=60)[1].decode(), process.returncode) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()

    assert [code for _, code in results] == [0] * PROCESSES, results
    engine = create_engine(empty_database_url)
    assert set(inspect(engine).get_table_names()) == {*Base.metadata.tables, "alembic_version"}
    engine.dispose()


def test_the_command_upgrades_the_database_of_the_settings(tmp_path: Path) -> None:
    path = tmp_path / "rankzero.db"
    environment = os.environ | {"RANKZERO_DATABASE_URL": f"sqlite:///{path}"}

    subprocess.run([sys.executable, "-m", "jobs.database", "upgrade"], env=environment, check=True)

    engine = create_engine(f"sqlite:///{path}")
    assert "jobs" in inspect(engine).get_table_names()
    engine.dispose()


def test_a_downgrade_is_not_offered() -> None:
    command = [sys.executable, "-m", "jobs.database", "downgrade"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)

    assert answer.returncode != 0
    assert "usage: python -m jobs.database upgrade" in answer.stderr
    assert [revision.revision for revision in script().walk_revisions() if hasattr(revision.module, "downgrade")] == []


def test_the_revisions_form_one_line(upgraded: Engine) -> None:
    (head,) = script().get_heads()

    with upgraded.connect() as connection:
        assert MigrationContext.configure(connection).get_current_revision() == head
    assert len(script().get_bases()) == 1


def insert(connection: Connection, name: str, row: dict[str, Any]) -> None:
    connection.execute(table(name, *map(column, row)).insert(), row)


def vars_of(row: MetricBucket) -> dict[str, Any]:
    return {column.name: getattr(row, column.name) for column in MetricBucket.__table__.columns}


def described(database: Inspector) -> dict[str, dict[str, Any]]:
    """What a database says of its own tables, in a form that two of one engine can be compared by."""
    return {
        table: {
            "columns": {
                column["name"]: (str(column["type"]), column["nullable"], column["default"])
                for column in database.get_columns(table)
            },
            "key": database.get_pk_constraint(table),
            "foreign keys": by_name(database.get_foreign_keys(table)),
            "uniques": by_name(database.get_unique_constraints(table)),
            "checks": [
                {"name": check["name"], "text": re.sub(r"\s+", " ", check["sqltext"])}
                for check in by_name(database.get_check_constraints(table))
            ],
            "indexes": [
                {**index, "dialect_options": conditions(index)} for index in by_name(database.get_indexes(table))
            ],
        }
        for table in database.get_table_names()
        if table != "alembic_version"
    }


def by_name(rows: Any) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: str(row["name"]))


def conditions(index: dict[str, Any]) -> dict[str, str]:
    return {option: str(value) for option, value in index.get("dialect_options", {}).items()}
