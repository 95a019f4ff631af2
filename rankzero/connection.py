"""The client's connection to one service: requests, pages, and every refusal as one of `rankzero.errors`."""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import httpx2
from pydantic import BaseModel, ValidationError

from rankzero.errors import RefusedError, UnreachableError, UsageError

URL_VARIABLE = "RANKZERO_URL"
DEFAULT_URL = "http://127.0.0.1:8000"
PAGE = 1000

Model = TypeVar("Model", bound=BaseModel)
Query = Mapping[str, str | int | Sequence[str] | None]


class Connection:
    """One service, at `url` or else at RANKZERO_URL or else on this machine.

    Every method raises UnreachableError where no service answers and RefusedError where it refuses.
    """

    def __init__(self, url: str | None, *, timeout_s: float) -> None:
        self.url = (url or os.environ.get(URL_VARIABLE) or DEFAULT_URL).rstrip("/")
        try:
            self._http = httpx2.Client(base_url=self.url, timeout=timeout_s)
            self._http.build_request("GET", "/")
        except (httpx2.InvalidURL, ValueError) as error:
            raise UsageError(f"{self.url!r} is no URL of a service: {error}") from error

    def get(self, path: str, query: Query | None = None) -> Any:
        """Return the answer to a GET; parameters that are None are left out."""
        params = {key: value for key, value in (query or {}).items() if value is not None}
        return self._send(self._http.build_request("GET", path, params=params))

    def send(self, method: str, path: str, body: Mapping[str, Any] | None = None, *, of: str = "request") -> Any:
        """Return the answer to a request with a JSON body, `of` what an error calls it. Raises UsageError for a body
        that is no JSON."""
        try:
            request = self._http.build_request(method, path, json=body)
        except (TypeError, ValueError) as error:
            raise UsageError(f"the {of} is no JSON: {error}") from error
        return self._send(request)

    def pages(self, path: str, model: type[Model], query: Query) -> Iterator[Model]:
        """Yield the items of every page of a list."""
        cursor: str | None = None
        while True:
            page = self.get(path, {**query, "size": PAGE, "cursor": cursor})
            for item in page["items"]:
                yield parsed(model, item)
            cursor = page["next_page"]
            if cursor is None:
                return

    def tail(self, path: str, model: type[Model], query: Query, after: int) -> Iterator[Model]:
        """Yield the items of a list that came after `after`."""
        while True:
            answer = self.get(path, {**query, "after": after, "limit": PAGE})
            for item in answer["items"]:
                yield parsed(model, item)
            if len(answer["items"]) < PAGE:
                return
            after = answer["after"]

    def close(self) -> None:
        """Close the sockets."""
        self._http.close()

    def _send(self, request: httpx2.Request) -> Any:
        try:
            response = self._http.send(request)
        except httpx2.TimeoutException as error:
            raise UnreachableError(f"the service at {self.url} does not answer in time") from error
        except httpx2.TransportError as error:
            way_out = f"start one with `rankzero up`, or name another with {URL_VARIABLE}"
            raise UnreachableError(f"no service at {self.url} ({error}); {way_out}") from error
        if not response.is_success:
            raise _refusal(response, self.url)
        return None if response.status_code == httpx2.codes.NO_CONTENT else _json(response, self.url)


def parsed(model: type[Model], content: Any) -> Model:
    """Return an answer as a model. Raises RefusedError for one of another version of the service."""
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
