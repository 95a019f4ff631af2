"""The Python client: a service's HTTP API as methods."""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx2
from pydantic import BaseModel, ValidationError

from rankzero.errors import RefusedError, UnreachableError, UsageError, WaitTimeoutError
from rankzero.models import Attempt, Checkpoint, Event, Host, Job, LogChunk, Metric

URL_VARIABLE = "RANKZERO_URL"
DEFAULT_URL = "http://127.0.0.1:8000"
PAGE = 1000
PATIENCE_S = 60.0
"""How long following a job outlasts a service that does not answer, in seconds."""

Model = TypeVar("Model", bound=BaseModel)
Query = Mapping[str, str | int | Sequence[str] | None]


class Client:
    """One service, at `url` or else at RANKZERO_URL or else on this machine; a context manager that closes itself.

    Every method raises UnreachableError where no service answers and RefusedError where it refuses.
    """

    def __init__(self, url: str | None = None, *, timeout_s: float = 30) -> None:
        self.url = (url or os.environ.get(URL_VARIABLE) or DEFAULT_URL).rstrip("/")
        try:
            self._http = httpx2.Client(base_url=self.url, timeout=timeout_s)
            self._http.build_request("GET", "/")
        except (httpx2.InvalidURL, ValueError) as error:
            raise UsageError(f"{self.url!r} is no URL of a service: {error}") from error

    def submit(self, spec: Mapping[str, Any] | None = None, **fields: Any) -> Job:
        """Submit a job and return it with its `warnings`; `fields` come on top of `spec`.

        `client.submit(device="0,1", train={"model": "resnet50", "data": "cifar10", "batch": 256})`
        """
        body = {**(spec or {}), **fields}
        try:
            request = self._http.build_request("POST", "/jobs", json=body)
        except (TypeError, ValueError) as error:
            raise UsageError(f"the spec is no JSON: {error}") from error
        return _parsed(Job, self._send(request))

    def get(self, job_id: int) -> Job:
        """Return a job."""
        return _parsed(Job, self._get(f"/jobs/{job_id}"))

    def list(
        self,
        *,
        state: Sequence[str] = (),
        labels: Mapping[str, str] | None = None,
        name: str | None = None,
        sort: str = "-id",
    ) -> Iterator[Job]:
        """Yield every job in any of these states, with all these labels, whose name contains `name`."""
        wanted = [f"{key}={value}" for key, value in (labels or {}).items()]
        yield from self._pages("/jobs", Job, {"state": state, "label": wanted, "name": name, "sort": sort})

    def cancel(self, job_id: int) -> Job:
        """Ask for the end of a job; one that is over is returned as it is."""
        return _parsed(Job, self._send(self._http.build_request("POST", f"/jobs/{job_id}/cancel")))

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
        yield from self._pages(f"/jobs/{job_id}/metrics", Metric, {"name": names, "from_step": from_step})

    def checkpoints(self, job_id: int) -> Iterator[Checkpoint]:
        """Yield a job's checkpoints that still exist, oldest first."""
        yield from self._pages(f"/jobs/{job_id}/checkpoints", Checkpoint, {})

    def attempts(self, job_id: int) -> Sequence[Attempt]:
        """Return a job's attempts, oldest first, with the devices each was given."""
        return [_parsed(Attempt, item) for item in self._get(f"/jobs/{job_id}/attempts")["items"]]

    def events(self, job_id: int, *, after: int = 0) -> Iterator[Event]:
        """Yield what has happened to a job after the event `after`, oldest first."""
        yield from self._tail(f"/jobs/{job_id}/events", Event, {}, after)

    def logs(
        self, job_id: int, *, rank: int | None = None, attempt: int | None = None, after: int = 0
    ) -> Iterator[LogChunk]:
        """Yield what a job's ranks have printed after the piece `after`, in the order it was shipped."""
        yield from self._tail(f"/jobs/{job_id}/logs", LogChunk, {"rank": rank, "attempt": attempt}, after)

    def hosts(self) -> Sequence[Host]:
        """Return every host with its devices."""
        return [_parsed(Host, item) for item in self._get("/hosts")["items"]]

    def is_ready(self) -> bool:
        """Whether the service answers and can take jobs."""
        try:
            self._get("/readyz")
        except UnreachableError:
            return False
        return True

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

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

    def _pages(self, path: str, model: type[Model], query: Query) -> Iterator[Model]:
        cursor: str | None = None
        while True:
            page = self._get(path, {**query, "size": PAGE, "cursor": cursor})
            for item in page["items"]:
                yield _parsed(model, item)
            cursor = page["next_page"]
            if cursor is None:
                return

    def _tail(self, path: str, model: type[Model], query: Query, after: int) -> Iterator[Model]:
        while True:
            answer = self._get(path, {**query, "after": after, "limit": PAGE})
            for item in answer["items"]:
                yield _parsed(model, item)
            if len(answer["items"]) < PAGE:
                return
            after = answer["after"]

    def _get(self, path: str, query: Query | None = None) -> Any:
        params = {key: value for key, value in (query or {}).items() if value is not None}
        return self._send(self._http.build_request("GET", path, params=params))

    def _send(self, request: httpx2.Request) -> Any:
        try:
            response = self._http.send(request)
        except httpx2.TimeoutException as error:
            raise UnreachableError(f"the service at {self.url} does not answer in time") from error
        except httpx2.TransportError as error:
            way_out = f"start one with `rankzero up`, or name another with {URL_VARIABLE}"
            raise UnreachableError(f"no service at {self.url} ({error}); {way_out}") from error
        if response.is_success:
            return _json(response, self.url)
        raise _refusal(response, self.url)


def _parsed(model: type[Model], content: Any) -> Model:
    try:
        return model.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise RefusedError(
            f"the service's answer is not understood ({where}: {first['msg']}); client and service differ in version",
            status=200,
        ) from error


def _json(response: httpx2.Response, url: str) -> Any:
    try:
        return response.json()
    except ValueError as error:
        raise RefusedError(f"what answers at {url} is no RankZero service", status=response.status_code) from error


def _refusal(response: httpx2.Response, url: str) -> RefusedError | UnreachableError:
    """Turn a problem document into an error of one line."""
    try:
        problem = response.json()
        detail = str(problem["detail"])
        fields = {each["field"]: each["message"] for each in problem.get("errors", [])}
    except (ValueError, KeyError, TypeError):
        detail, fields = f"{url} answers {response.status_code} {response.reason_phrase}", {}
    if response.status_code == httpx2.codes.SERVICE_UNAVAILABLE:
        return UnreachableError(detail)
    return RefusedError(detail, status=response.status_code, fields=fields)
