"""Jobs: submitting and finding them, and what may be done with one that is there."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from rankzero.connection import parsed
from rankzero.errors import RefusedError
from rankzero.fleet import Plan
from rankzero.models import Attempt, Event, Job
from rankzero.resources.resource import Resource

_CONFLICT = 409
_EDITED = 412


class Jobs(Resource):
    """The client's methods about jobs."""

    def submit(
        self, spec: Mapping[str, Any] | None = None, *, idempotency_key: str | None = None, **fields: Any
    ) -> Job:
        """Submit a job and return it with its `warnings`; `fields` come on top of `spec`.

        `client.submit(device="0,1", train={"model": "resnet50", "data": "cifar10", "batch": 256})`

        Where an answer is lost it is submitted again, and stays one job. A key of your own makes that so for a week and
        across processes: whoever submits the same under it has the same job.
        """
        body = {**(spec or {}), **fields}
        return parsed(Job, self._connection.make("/jobs", body, of="spec", idempotency_key=idempotency_key))

    def plan(self, spec: Mapping[str, Any] | None = None, **fields: Any) -> Plan:
        """Say what would become of a job if it were submitted now, with nothing stored."""
        return parsed(Plan, self._connection.send("POST", "/jobs/plan", {**(spec or {}), **fields}, of="spec"))

    def clone(
        self,
        job_id: int,
        changes: Mapping[str, Any] | None = None,
        *,
        start_from: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Job:
        """Submit a job like another one and return it with its `warnings`.

        `changes` is a JSON merge patch over the other's spec: `client.clone(7, {"train": {"lr": 0.01}})`. With
        `start_from`, it starts from a checkpoint: `{"mode": "resume"}` from the last of that job, `{}` with the best
        weights; `job` and `checkpoint` name any other. `idempotency_key` as for `submit`.
        """
        body = {"changes": changes or {}} | ({} if start_from is None else {"start_from": start_from})
        answer = self._connection.make(f"/jobs/{job_id}/clone", body, of="spec", idempotency_key=idempotency_key)
        return parsed(Job, answer)

    def get(self, job_id: int) -> Job:
        """Return a job."""
        return parsed(Job, self._connection.get(f"/jobs/{job_id}"))

    def list(
        self,
        *,
        state: Sequence[str] = (),
        labels: Mapping[str, str] | None = None,
        name: str | None = None,
        user: str | None = None,
        priority: int | None = None,
        recipe: str | None = None,
        model: str | None = None,
        host: str | None = None,
        parent: int | None = None,
        created_after: datetime | None = None,
        created_before: datetime | None = None,
        finished_after: datetime | None = None,
        sort: str = "-id",
        limit: int | None = None,
    ) -> Iterator[Job]:
        """Yield every job, or the first `limit`, in any of these states, with all these labels, whose name contains
        `name`, for this user, of this priority, that trains by this recipe and this model, has run on `host`, and was
        cloned from the job `parent` or begun with a checkpoint of it. Times are aware."""
        query = {
            "state": state,
            "label": [f"{key}={value}" for key, value in (labels or {}).items()],
            "name": name,
            "user": user,
            "priority": priority,
            "recipe": recipe,
            "model": model,
            "host": host,
            "parent": parent,
            "created_after": created_after,
            "created_before": created_before,
            "finished_after": finished_after,
            "sort": sort,
        }
        yield from self._connection.pages("/jobs", Job, query, limit=limit)

    def cancel(self, job_id: int) -> Job:
        """Ask for the end of a job; one that is over is returned as it is."""
        return self._verb(job_id, "cancel")

    def pause(self, job_id: int) -> Job:
        """Ask a job to stop with a checkpoint and to free its devices until it is resumed."""
        return self._verb(job_id, "pause")

    def resume(self, job_id: int, **place: Any) -> Job:
        """Queue a paused job again; it goes on from its last checkpoint.

        With `device`, `nproc_per_node`, `host` or `nodes`, as in a spec, it goes on there.
        """
        path = f"/jobs/{job_id}/resume"
        try:
            return parsed(Job, self._connection.send("POST", path, place or None, of="resume"))
        except RefusedError as error:
            return self._unless_done(job_id, error, undone={"paused"})

    def retry(self, job_id: int) -> Job:
        """Queue a failed job again, with all of its retries; it goes on from its last checkpoint."""
        try:
            return self._verb(job_id, "retry")
        except RefusedError as error:
            return self._unless_done(job_id, error, undone={"failed"})

    def change(
        self,
        job_id: int,
        *,
        priority: int | None = None,
        labels: Mapping[str, str | None] | None = None,
        seen: Job | None = None,
    ) -> Job:
        """Change a job's priority, or some of its labels: None takes a label away, and those not named stay.

        With `seen`, the job as it was when that was decided, nothing is changed where somebody else has changed its
        priority or labels since: RefusedError, with the status 412.
        """
        given = {"priority": priority, "labels": labels}
        changes = {name: value for name, value in given.items() if value is not None}
        path = f"/jobs/{job_id}"
        if seen is None:
            return parsed(Job, self._connection.send("PATCH", path, changes, of="change"))
        now, tag = self._connection.tagged(path)
        job = parsed(Job, now)
        if (job.priority, job.labels) != (seen.priority, seen.labels):
            raise RefusedError(f"job {job_id} has been edited since: read it again, and decide anew", status=_EDITED)
        try:
            return parsed(Job, self._connection.send("PATCH", path, changes, of="change", expected=tag))
        except RefusedError as error:
            if not (error.may_be_done and error.status == _EDITED):
                raise
            # Sent again after its answer was lost, it may have met what it had done itself.
            job = self.get(job_id)
            wanted = {**seen.labels, **(labels or {})}
            is_so = job.labels == {key: value for key, value in wanted.items() if value is not None}
            if is_so and job.priority == (seen.priority if priority is None else priority):
                return job
            raise

    def attempts(self, job_id: int) -> Sequence[Attempt]:
        """Return a job's attempts, oldest first, with the devices each was given."""
        return self._connection.items(f"/jobs/{job_id}/attempts", Attempt)

    def events(self, job_id: int, *, after: int = 0, kinds: Sequence[str] = ()) -> Iterator[Event]:
        """Yield what has happened to a job after the event `after`, oldest first; with `kinds` only events of these."""
        yield from self._connection.tail(f"/jobs/{job_id}/events", Event, {"kind": kinds}, after)

    def _verb(self, job_id: int, verb: str) -> Job:
        return parsed(Job, self._connection.send("POST", f"/jobs/{job_id}/{verb}"))

    def _unless_done(self, job_id: int, refused: RefusedError, *, undone: set[str]) -> Job:
        """Return the job where a verb, sent again after its answer was lost, is refused for having been done already;
        else raise the refusal."""
        if not (refused.may_be_done and refused.status == _CONFLICT):
            raise refused
        job = self.get(job_id)
        if job.is_over or job.state in undone:
            raise refused
        return job
