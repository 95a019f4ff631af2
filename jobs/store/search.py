"""Finding jobs, and what happened to one."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import Select, select

from jobs.column_types import json_each_text
from jobs.states import State
from jobs.tables import Job, JobEvent, Placement

SORTS = ("id", "-id", "priority", "-priority", "name", "-name", "created_at", "-created_at")


def select_jobs(
    *,
    states: Sequence[State] = (),
    labels: Mapping[str, str] | None = None,
    name: str | None = None,
    user: str | None = None,
    priority: int | None = None,
    recipe: str | None = None,
    model: str | None = None,
    host: str | None = None,
    parent_id: int | None = None,
    created_after: datetime | None = None,
    created_before: datetime | None = None,
    finished_after: datetime | None = None,
    sort: str = "-id",
) -> Select[Job]:
    """Return the query for the jobs that match all that is given.

    Those are in any of `states`, have all of `labels` and a name that contains `name`, train a `model` by a `recipe`,
    have had an attempt on `host`, were cloned from `parent_id` or begun with a checkpoint of it. A time may itself be
    the one given as `after`, and not the one given as `before`.
    """
    query = select(Job)
    if states:
        query = query.where(Job.state.in_(states))
    for key, value in (labels or {}).items():
        pairs = json_each_text(Job.labels).table_valued("key", "value")
        query = query.where(select(pairs.c.key).where(pairs.c.key == key, pairs.c.value == value).exists())
    if name:
        query = query.where(Job.name.icontains(name, autoescape=True))
    if host is not None:
        there = (Placement.job_id == Job.id, Placement.host_name == host)
        query = query.where(select(Placement.id).where(*there).exists())
    train = Job.spec["train"]
    for column, wanted in (
        *((Job.user, user), (Job.priority, priority), (Job.parent_id, parent_id)),
        *((train["recipe"].as_string(), recipe), (train["model"].as_string(), model)),
    ):
        if wanted is not None:
            query = query.where(column == wanted)
    if created_after is not None:
        query = query.where(Job.created_at >= created_after)
    if created_before is not None:
        query = query.where(Job.created_at < created_before)
    if finished_after is not None:
        query = query.where(Job.finished_at >= finished_after)
    return _ordered(query, sort)


def select_events(
    job_id: int, *, after: int = 0, before: int | None = None, kinds: Sequence[str] = (), newest_first: bool = False
) -> Select[JobEvent]:
    """Return the query for a job's events with ids above `after` and below `before`, of any of `kinds`."""
    query = select(JobEvent).where(JobEvent.job_id == job_id, JobEvent.id > after)
    if before is not None:
        query = query.where(JobEvent.id < before)
    if kinds:
        query = query.where(JobEvent.kind.in_(kinds))
    return query.order_by(JobEvent.id.desc() if newest_first else JobEvent.id)


def _ordered(query: Select[Job], sort: str) -> Select[Job]:
    assert sort in SORTS, f"{sort} is refused before it gets here"
    column = getattr(Job, sort.removeprefix("-"))
    descending = sort.startswith("-")
    query = query.order_by(column.desc() if descending else column)
    return query if column is Job.id else query.order_by(Job.id.desc() if descending else Job.id)
