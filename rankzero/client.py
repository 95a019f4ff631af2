"""The Python client: a service's HTTP API as methods."""

import time
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from rankzero.connection import Connection, parsed
from rankzero.errors import UnreachableError, WaitTimeoutError
from rankzero.fleet import Host, Plan, Quota, Quotas
from rankzero.models import Attempt, Checkpoint, Event, Job, LogChunk, Metric

PATIENCE_S = 60.0
"""How long following a job outlasts a service that does not answer, in seconds."""


class Client:
    """One service, at `url` or else at RANKZERO_URL or else on this machine; a context manager that closes itself.

    Every method raises UnreachableError where no service answers and RefusedError where it refuses.
    """

    def __init__(self, url: str | None = None, *, timeout_s: float = 30) -> None:
        self._connection = Connection(url, timeout_s=timeout_s)
        self.url = self._connection.url

    def submit(self, spec: Mapping[str, Any] | None = None, **fields: Any) -> Job:
        """Submit a job and return it with its `warnings`; `fields` come on top of `spec`.

        `client.submit(device="0,1", train={"model": "resnet50", "data": "cifar10", "batch": 256})`
        """
        return parsed(Job, self._connection.send("POST", "/jobs", {**(spec or {}), **fields}, of="spec"))

    def plan(self, spec: Mapping[str, Any] | None = None, **fields: Any) -> Plan:
        """Say what would become of a job if it were submitted now, with nothing stored."""
        return parsed(Plan, self._connection.send("POST", "/jobs/plan", {**(spec or {}), **fields}, of="spec"))

    def clone(
        self,
        job_id: int,
        changes: Mapping[str, Any] | None = None,
        *,
        start_from: Mapping[str, Any] | None = None,
    ) -> Job:
        """Submit a job like another one and return it with its `warnings`.

        `changes` is a JSON merge patch over the other's spec: `client.clone(7, {"train": {"lr": 0.01}})`. With
        `start_from`, it starts from a checkpoint: `{"mode": "resume"}` from the last of that job, `{}` with the best
        weights; `job` and `checkpoint` name any other.
        """
        body = {"changes": changes or {}} | ({} if start_from is None else {"start_from": start_from})
        return parsed(Job, self._connection.send("POST", f"/jobs/{job_id}/clone", body, of="spec"))

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
        parent: int | None = None,
        sort: str = "-id",
    ) -> Iterator[Job]:
        """Yield every job in any of these states, with all these labels, whose name contains `name`, for this user, and
        cloned from the job `parent` or begun with a checkpoint of it."""
        wanted = [f"{key}={value}" for key, value in (labels or {}).items()]
        query = {"state": state, "label": wanted, "name": name, "user": user, "parent": parent, "sort": sort}
        yield from self._connection.pages("/jobs", Job, query)

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
        return parsed(Job, self._connection.send("POST", f"/jobs/{job_id}/resume", place or None, of="resume"))

    def retry(self, job_id: int) -> Job:
        """Queue a failed job again, with all of its retries; it goes on from its last checkpoint."""
        return self._verb(job_id, "retry")

    def change(
        self, job_id: int, *, priority: int | None = None, labels: Mapping[str, str | None] | None = None
    ) -> Job:
        """Change a job's priority, or some of its labels: None takes a label away, and those not named stay."""
        given = {"priority": priority, "labels": labels}
        changes = {name: value for name, value in given.items() if value is not None}
        return parsed(Job, self._connection.send("PATCH", f"/jobs/{job_id}", changes, of="change"))

    def follow(self, job_id: int, *, poll_s: float = 0.5) -> Iterator[Job]:
        """Yield the job now and after every change, until it is over.

        An outage of the service shorter than PATIENCE_S is waited out; a longer one raises UnreachableError.
        """
        last: Job | None = None
        for job in self._looks(job_id, poll_s):
            if job is not None and job != last:
                yield job
                last = job

    def wait(self, job_id: int, *, timeout_s: float | None = None, poll_s: float = 0.5) -> Job:
        """Return the job once it is over, waiting outages out as `follow` does.

        Raises WaitTimeoutError after `timeout_s` seconds; the job goes on then.
        """
        deadline = float("inf") if timeout_s is None else time.monotonic() + timeout_s
        for job in self._looks(job_id, poll_s):
            if job is not None and job.is_over:
                return job
            if time.monotonic() >= deadline:
                state = job.state if job is not None else "out of sight"
                raise WaitTimeoutError(f"job {job_id} is still {state} after {timeout_s:g} s")
        raise AssertionError("the looks at a job end only when it is over")

    def metrics(self, job_id: int, *, names: Sequence[str] = (), from_step: int = 0) -> Iterator[Metric]:
        """Yield a job's metric values by name and step: for each step that of the newest attempt that reached it."""
        yield from self._connection.pages(f"/jobs/{job_id}/metrics", Metric, {"name": names, "from_step": from_step})

    def checkpoints(self, job_id: int) -> Iterator[Checkpoint]:
        """Yield a job's checkpoints that still exist, oldest first."""
        yield from self._connection.pages(f"/jobs/{job_id}/checkpoints", Checkpoint, {})

    def attempts(self, job_id: int) -> Sequence[Attempt]:
        """Return a job's attempts, oldest first, with the devices each was given."""
        return [parsed(Attempt, item) for item in self._connection.get(f"/jobs/{job_id}/attempts")["items"]]

    def events(self, job_id: int, *, after: int = 0) -> Iterator[Event]:
        """Yield what has happened to a job after the event `after`, oldest first."""
        yield from self._connection.tail(f"/jobs/{job_id}/events", Event, {}, after)

    def logs(
        self, job_id: int, *, rank: int | None = None, attempt: int | None = None, after: int = 0
    ) -> Iterator[LogChunk]:
        """Yield what a job's ranks have printed after the piece `after`, in the order it was shipped."""
        yield from self._connection.tail(f"/jobs/{job_id}/logs", LogChunk, {"rank": rank, "attempt": attempt}, after)

    def hosts(self) -> Sequence[Host]:
        """Return every host with its devices."""
        return [parsed(Host, item) for item in self._connection.get("/hosts")["items"]]

    def drain(self, host: str, *, note: str | None = None, evict: bool = False) -> Host:
        """Have a host get no new jobs until it is taken back; `evict` also stops those on it, with a checkpoint, and
        queues them again."""
        return parsed(
            Host, self._connection.send("POST", f"/hosts/{_part(host)}/drain", {"note": note, "evict": evict})
        )

    def undrain(self, host: str) -> Host:
        """Take a drained host back."""
        return parsed(Host, self._connection.send("POST", f"/hosts/{_part(host)}/undrain"))

    def remove_host(self, host: str) -> None:
        """Forget a host that is gone for good; a worker that registers under its name brings it back."""
        self._connection.send("DELETE", f"/hosts/{_part(host)}")

    def release(self, host: str, device: str) -> Host:
        """Hand out a device again that was taken away after attempts were lost on it."""
        return parsed(Host, self._connection.send("POST", f"/hosts/{_part(host)}/devices/{_part(device)}/release"))

    def quotas(self) -> Quotas:
        """Return every quota, and what each user's jobs hold and have used lately."""
        return parsed(Quotas, self._connection.get("/quotas"))

    def set_quota(self, kind: str, subject: str, *, max_devices: int | None = None, share: float = 1) -> Quota:
        """Set the quota of a `user`, or of a `label` by its `key=value`, in place of the one it had."""
        body = {"max_devices": max_devices, "share": share}
        return parsed(Quota, self._connection.send("PUT", f"/quotas/{_part(kind)}/{_part(subject)}", body))

    def delete_quota(self, kind: str, subject: str) -> None:
        """Take a quota away."""
        self._connection.send("DELETE", f"/quotas/{_part(kind)}/{_part(subject)}")

    def is_ready(self) -> bool:
        """Whether the service answers and can take jobs."""
        try:
            self._connection.get("/readyz")
        except UnreachableError:
            return False
        return True

    def close(self) -> None:
        """Close the connections."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _looks(self, job_id: int, poll_s: float) -> Iterator[Job | None]:
        """Yield the job again and again until it is over; None for a look at which the service did not answer."""
        job = self.get(job_id)
        answered_at = time.monotonic()
        yield job
        while not job.is_over:
            time.sleep(poll_s)
            try:
                job = self.get(job_id)
            except UnreachableError:
                if time.monotonic() - answered_at > PATIENCE_S:
                    raise
                yield None
                continue
            answered_at = time.monotonic()
            yield job

    def _verb(self, job_id: int, verb: str) -> Job:
        return parsed(Job, self._connection.send("POST", f"/jobs/{job_id}/{verb}"))


def _part(name: str) -> str:
    """A name as one part of a path, whatever is in it."""
    return quote(name, safe="")
