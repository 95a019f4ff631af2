"""The client's connection to one service: requests, tried again where that is safe, pages, and every refusal as one of
`rankzero.errors`.

Every request but a few makes the same of the service however often it is sent: GET, PUT, PATCH and DELETE by what they
are, the POSTs that change what is there since they say how it is to be, and those that make something by their
`Idempotency-Key`. So a request whose answer was lost is sent again.
"""

import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

import httpx2
from pydantic import BaseModel, ValidationError

from rankzero import credentials
from rankzero.errors import RefusedError, UnreachableError, UsageError
from rankzero.patience import Patience

URL_VARIABLE = "RANKZERO_URL"
DEFAULT_URL = "http://127.0.0.1:8000"
PAGE = 1000
PATIENCE_S = 60.0

Model = TypeVar("Model", bound=BaseModel)
Query = Mapping[str, str | int | bool | datetime | Sequence[str] | None]

_UNSENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError)
"""After these the service has seen nothing of the request."""
_FINAL = (httpx2.UnsupportedProtocol, httpx2.LocalProtocolError, httpx2.DecodingError)
"""After these it would be the same again."""
_AWAY = frozenset({502, 503, 504})
"""Answers for a service, or a database behind it, that is away for now: what was asked for may have been done."""
_OF_OTHERS = frozenset({404, 405, 501})
"""With no problem document, answers of a server that does something else."""
_TOO_MANY = 429
"""The answer to what came too soon, and was not looked at."""
_WAY_IN = "`rankzero login` stores a token for this URL; RANKZERO_TOKEN or Client(…, token=…) give another"


class Connection:
    """One service, at `url` or else at RANKZERO_URL or else on this machine.

    Every method raises UnreachableError where no service answers, for `patience_s` seconds, and RefusedError where it
    refuses. Where nothing has ever answered, nothing is tried again: probably there is no service.
    """

    def __init__(
        self,
        url: str | None,
        *,
        token: str | None = None,
        insecure: bool | None = None,
        timeout_s: float,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self.url = (url or os.environ.get(URL_VARIABLE) or DEFAULT_URL).rstrip("/")
        self.timeout_s = timeout_s
        self.patience_s = patience_s
        credential = credentials.find(self.url, token=token, insecure=insecure)
        headers = {} if credential is None else {"Authorization": f"Bearer {credential.token}"}
        try:
            # What stays on this machine goes through no proxy, which HTTP_PROXY may name for all the rest.
            transport = httpx2.HTTPTransport() if credentials.is_loopback(self.url) else None
            # Redirects are not followed: the token is for this service alone.
            self._http = httpx2.Client(
                base_url=self.url, timeout=timeout_s, headers=headers, transport=transport, follow_redirects=False
            )
            self._http.build_request("GET", "/")
        except (httpx2.InvalidURL, ValueError) as error:
            raise UsageError(f"{self.url!r} is no URL of a service: {error}") from error
        except OSError as error:
            raise UsageError(f"the certificates that SSL_CERT_FILE or SSL_CERT_DIR name are none: {error}") from error
        self.was_there = False
        """Whether anything has ever answered."""

    def get(self, path: str, query: Query | None = None, *, patience_s: float | None = None) -> Any:
        """Return the answer to a GET; parameters that are None are left out."""
        return self._json(self.answer(self.build(path, query), patience_s=patience_s))

    def tagged(self, path: str) -> tuple[Any, str]:
        """Return the answer to a GET of one thing, and its ETag."""
        response = self.answer(self.build(path))
        return self._json(response), response.headers.get("ETag", "")

    def read(self, path: str, query: Query | None = None) -> bytes:
        """Return what a GET is answered with, whatever it is."""
        return self.answer(self.build(path, query)).content

    def send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        of: str = "request",
        once: bool = False,
        expected: str | None = None,
    ) -> Any:
        """Return the answer to a request with a JSON body, `of` what an error calls it.

        With `once` it is not sent again where it may have been done. With `expected`, an ETag, it is refused with 412
        where somebody else has edited the thing since. Raises UsageError for a body that is no JSON.
        """
        headers = {} if expected is None else {"If-Match": expected}
        return self._sent(method, path, body, of=of, once=once, headers=headers)

    def make(
        self, path: str, body: Mapping[str, Any], *, of: str = "request", idempotency_key: str | None = None
    ) -> Any:
        """Return the answer to a POST that makes something: one thing, however often it has to be sent.

        Sent again under the same key, also by another process, it makes no second one.
        """
        headers = {"Idempotency-Key": idempotency_key or uuid.uuid4().hex}
        return self._sent("POST", path, body, of=of, once=False, headers=headers)

    def delete(self, path: str) -> None:
        """Have something be there no more. Raises RefusedError where it was not there to begin with."""
        try:
            self.send("DELETE", path)
        except RefusedError as error:
            if not (error.may_be_done and error.status == httpx2.codes.NOT_FOUND):
                raise

    def items(self, path: str, model: type[Model], query: Query | None = None) -> list[Model]:
        """Return the items of a list that is one answer."""
        return [parsed(model, item) for item in self._part(path, query or {})["items"]]

    def pages(self, path: str, model: type[Model], query: Query, *, limit: int | None = None) -> Iterator[Model]:
        """Yield the items of every page of a list, or the first `limit` of them, with no more asked for than these."""
        cursor: str | None = None
        left = limit
        while left is None or left > 0:
            page = self._part(path, {**query, "size": PAGE if left is None else min(PAGE, left), "cursor": cursor})
            for item in page["items"]:
                yield parsed(model, item)
            cursor = page.get("next_page")
            if cursor is None:
                return
            left = None if left is None else left - len(page["items"])

    def tail(self, path: str, model: type[Model], query: Query, after: int, *, limit: int = PAGE) -> Iterator[Model]:
        """Yield the items of a list that came after `after`, read by `limit` at a time."""
        while True:
            answer = self._part(path, {**query, "after": after, "limit": limit})
            for item in answer["items"]:
                yield parsed(model, item)
            if len(answer["items"]) < limit:
                return
            after = answer["after"]

    def build(
        self,
        path: str,
        query: Query | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        silence_s: float | None = None,
    ) -> httpx2.Request:
        """Return a GET that is not sent yet; after `silence_s` seconds without a byte it counts as broken off.

        Raises UsageError for parameters that no URL can have.
        """
        params = {key: _written(value) for key, value in (query or {}).items() if value is not None}
        timeout = httpx2.Timeout(self.timeout_s, read=self.timeout_s if silence_s is None else silence_s)
        try:
            return self._http.build_request("GET", path, params=params, headers=headers, timeout=timeout)
        except (httpx2.InvalidURL, UnicodeEncodeError) as error:
            raise UsageError(f"{path:.100} with {params!r:.100} cannot be asked for: {error}") from error

    @contextmanager
    def open(self, request: httpx2.Request, *, patience_s: float | None = None) -> Iterator[httpx2.Response]:
        """Send a request for the block, which reads the answer as it comes. httpx2's errors end it where that breaks
        off."""
        response = self.answer(request, stream=True, patience_s=patience_s)
        try:
            yield response
        finally:
            response.close()

    def answer(
        self, request: httpx2.Request, *, once: bool = False, stream: bool = False, patience_s: float | None = None
    ) -> httpx2.Response:
        """Send a request until it is answered, and return an answer that is no refusal."""
        patience = Patience(self.patience_s if patience_s is None else patience_s)
        may_be_done = False
        while True:
            try:
                response = self._http.send(request, stream=stream)
                if stream and not response.is_success:
                    response.read()
            except httpx2.RequestError as error:
                is_unsent = isinstance(error, _UNSENT)
                is_passing = self.was_there if is_unsent else not once and not isinstance(error, _FINAL)
                if not (is_passing and patience.pause()):
                    raise self._unreachable(error) from error
                may_be_done |= not is_unsent
                continue
            self.was_there = True
            if response.is_success:
                return response
            response.close()
            is_away = response.status_code in _AWAY
            is_passing = response.status_code == _TOO_MANY or (is_away and not once)
            if not (is_passing and patience.pause(_retry_after_s(response))):
                raise _refusal(response, self.url, may_be_done=may_be_done)
            may_be_done |= is_away

    def close(self) -> None:
        """Close the sockets."""
        self._http.close()

    def _sent(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        *,
        of: str,
        once: bool,
        headers: Mapping[str, str],
    ) -> Any:
        try:
            request = self._http.build_request(method, path, json=body, headers=headers)
        except httpx2.InvalidURL as error:
            raise UsageError(f"{path:.100} cannot be asked for: {error}") from error
        except (TypeError, ValueError) as error:
            raise UsageError(f"the {of} is no JSON: {error}") from error
        return self._json(self.answer(request, once=once))

    def _part(self, path: str, query: Query) -> dict[str, Any]:
        response = self.answer(self.build(path, query))
        answer = self._json(response)
        if not isinstance(answer, dict) or not isinstance(answer.get("items"), list):
            raise no_service(self.url, response)
        return answer

    def _json(self, response: httpx2.Response) -> Any:
        if response.status_code == httpx2.codes.NO_CONTENT:
            return None
        try:
            return response.json()
        except (ValueError, RecursionError) as error:
            raise no_service(self.url, response) from error

    def _unreachable(self, error: httpx2.RequestError) -> UnreachableError:
        if isinstance(error, httpx2.TimeoutException):
            return UnreachableError(f"the service at {self.url} does not answer in time")
        if self.was_there:
            return UnreachableError(f"the service at {self.url} answers no more ({error})")
        way_out = f"start one with `rankzero up`, or name another with {URL_VARIABLE}"
        return UnreachableError(f"no service at {self.url} ({error}); {way_out}")


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


def no_service(url: str, response: httpx2.Response) -> RefusedError:
    """Return the error for an answer that none of ours gives."""
    return RefusedError(f"what answers at {url} is no RankZero service", status=response.status_code)


def _refusal(response: httpx2.Response, url: str, *, may_be_done: bool) -> RefusedError | UnreachableError:
    """Turn a problem document into an error of one line."""
    status = response.status_code
    if response.has_redirect_location:
        to = response.headers["Location"]
        return RefusedError(
            f"{url} sends its callers on to {to!r}: name the service by that, if it is it", status=status
        )
    try:
        problem = response.json()
        detail = str(problem["detail"])
        fields = {each["field"]: each["message"] for each in problem.get("errors", [])}
    except (ValueError, KeyError, TypeError, RecursionError):
        problem, detail, fields = {}, f"{url} answers {status} {response.reason_phrase}", {}
        if status in _OF_OTHERS:
            detail += ", as no RankZero service does: RANKZERO_URL or --url names another"
    if status in _AWAY:
        return UnreachableError(detail)
    if status == httpx2.codes.UNAUTHORIZED:
        detail = f"{detail}; {_WAY_IN}"
    refused = RefusedError(detail, status=status, fields=fields, problem=problem)
    refused.may_be_done = may_be_done
    return refused


def _retry_after_s(response: httpx2.Response) -> float:
    """Return for how long the service asks to wait; 0 where it does not say (RFC 9110, section 10.2.3)."""
    text = response.headers.get("Retry-After", "").strip()
    if text.isdecimal():
        return float(text)
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return 0.0
    return max(0.0, (at.replace(tzinfo=at.tzinfo or UTC) - datetime.now(UTC)).total_seconds())


def _written(value: str | int | bool | datetime | Sequence[str]) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value
