"""What runs have reported, as tests read it back."""

from typing import Any

from jobs.store import attempts, reports
from jobs.tables import LogChunk, Placement
from tests.integration.store.conftest import Service


def series(service: Service, job_id: int, **limits: Any) -> list[tuple[str, int, float | None]]:
    """The values of a job's metrics as one series: name, step, value."""
    with service.database.session_scope(read_only=True) as session:
        rows = session.scalars(reports.select_metrics(job_id, **limits)).all()
        return [(row.name, row.step, row.value) for row in rows]


def logs(service: Service, job_id: int, **limits: Any) -> list[LogChunk]:
    """The pieces of a job's output."""
    with service.database.session_scope(read_only=True) as session:
        return list(session.scalars(reports.select_logs(job_id, **limits)))


def refreshed(service: Service, placement: Placement) -> Placement:
    """The placement as the database has it now, with the run directory that the test has given it."""
    with service.database.session_scope(read_only=True) as session:
        again = attempts.get_placement(session, placement.id)
    again.run_dir = placement.run_dir
    return again
