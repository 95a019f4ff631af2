"""Steps of a worker's threads: what goes wrong in one is told, and is nobody's to catch."""

from pathlib import Path

from sqlalchemy import text
from structlog.testing import capture_logs

from jobs.database import Database
from worker.steps import attempted


def test_what_goes_wrong_in_a_step_is_told_and_ends_no_thread(sqlite_url: str) -> None:
    database = Database(sqlite_url)

    with capture_logs() as logs:
        with attempted("files", database), database.session_scope() as session:
            session.execute(text("SELECT no_such_column FROM hosts"))
        with attempted("files", database):
            int("a defect")

    assert [(line["event"], line["step"]) for line in logs] == [("database_away", "files"), ("step_failed", "files")]
    assert logs[1]["exc_info"] is True
    database.dispose()


def test_of_a_schema_that_is_missing_the_tick_alone_tells(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'empty.db'}")

    with capture_logs() as logs, attempted("files", database), database.session_scope() as session:
        session.execute(text("SELECT name FROM hosts"))

    assert logs == []
    database.dispose()
