"""A job as the service answers with it, for what the command makes of one."""

from datetime import UTC, datetime
from typing import Any

from rankzero.models import Job

AT = datetime.now(UTC)


def job(state: str = "running", **fields: Any) -> Job:
    """A job of two devices with what its answer always has; `fields` come in place of that."""
    known = {"id": 7, "name": "n", "intent": "run", "attempt": 1, "priority": 50, "labels": {}, "world_size": 2}
    absent = {"reason": None, "failure": None, "progress": None, "started_at": None, "finished_at": None}
    spec = {"device": "cuda:0,cuda:1", "train": {}}
    return Job.model_validate({**known, **absent, "state": state, "spec": spec, "created_at": AT, **fields})
