"""The one table of HTTP errors, each answered as a problem document (RFC 9457)."""

import math
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from api import refusals
from api.etags import EditedSince, NotModified
from api.feed.places import TooManyStreams, UserHasTooManyStreams
from api.methods import NoSuchMethod, allowed
from api.observing import request_id
from api.ranges import RangeError
from jobs.column_types import storable
from jobs.database import AWAY
from jobs.errors import (
    FileElsewhereError,
    ForbiddenError,
    InvalidChangesError,
    InvalidFilterError,
    InvalidSpecError,
    KeyReusedError,
    NoKeyError,
    NotFoundError,
    SchemaMissingError,
    StateConflictError,
)
from jobs.unknown_fields import NO_SUCH_FIELD, describe_unknown

MEDIA_TYPE = "application/problem+json"
MAX_BODY_BYTES = 1024 * 1024
"""No job spec comes near this; a body above it is refused before it is read whole."""
LONGEST_NAME = 255
"""Characters that an answer shows of a name that a client has given a field: no field of ours is near this."""
MOST_TOLD = 100
"""Wrong fields that an answer names. A body may have very many, for whose list all other requests would wait."""
STREAMS_WAIT_S = 10
"""For how long whoever may open no stream more is asked to wait, in seconds."""
PLACES = ("body", "query", "path", "header", "cookie")
"""What FastAPI puts before a field's own path."""
WITH_SPEC = ("submit_job", "plan_job")
"""The operations whose body is a spec."""

log = structlog.get_logger()


class FieldError(BaseModel):
    """What is wrong with one field."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    field: str
    """Path of the field in the body, such as `train.batch`, or the name of the parameter."""
    message: str


class Problem(BaseModel):
    """Why a request was not done (RFC 9457)."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    type: str = "about:blank"
    """Nothing beyond the status: what to show is in `detail` and `errors`."""
    title: str
    """The status in words."""
    status: int
    detail: str
    """What was wrong, and what to do about it."""
    errors: list[FieldError] = []
    """The fields that are wrong, the first hundred of them."""
    request_id: str | None = None
    """What the service's log knows the request by; the header `X-Request-ID` has it too."""


def _documented(description: str) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Problem"}
    return {"model": Problem, "description": description, "content": {MEDIA_TYPE: {"schema": schema}}}


DOCUMENTED: dict[int | str, dict[str, Any]] = {
    400: _documented("The body cannot be read."),
    401: _documented("No token that counts came with the request."),
    403: _documented("The token's role does not allow it, or it is another user's; `detail` says who may."),
    404: _documented("There is no such thing."),
    413: _documented("The body is too large."),
    415: _documented("The body is not announced as JSON."),
    421: _documented("A service that listens on its own machine alone was asked by another name."),
    422: _documented("A field or parameter is wrong; `errors` names each."),
    429: _documented(
        "Too many requests of this token, streams of its user, or tokens that do not count; wait for `Retry-After` "
        "seconds."
    ),
    503: _documented(
        "The database does not answer now, or this process has no place for another stream; the same request may "
        "succeed later."
    ),
}
RANGE: dict[int | str, dict[str, Any]] = {
    416: _documented("The range in `Range` begins behind the end of what there is."),
}
"""For the routes of which a part may be asked for."""
_ELSEWHERE = {
    "host": {"type": "string", "description": "The host that has the file."},
    "path": {"type": "string", "description": "Where it lies there."},
    "copy_url": {"type": ["string", "null"], "description": "Where its copy is: a path, or an fsspec URL."},
}
FILE: dict[int | str, dict[str, Any]] = {
    409: {
        "description": "This API cannot read the file: `host`, `path` and `copy_url` say where it is.",
        "content": {
            MEDIA_TYPE: {
                "schema": {
                    "allOf": [
                        {"$ref": "#/components/schemas/Problem"},
                        {"type": "object", "properties": _ELSEWHERE},
                    ]
                }
            }
        },
    },
    **RANGE,
}
"""For the routes that answer with a file."""
CONFLICT: dict[int | str, dict[str, Any]] = {
    409: _documented("The state of the job or host does not allow it; `detail` names it and the way out."),
}
"""For the routes of verbs."""
EDITED_SINCE: dict[int | str, dict[str, Any]] = {
    412: _documented("Somebody else has edited it since the ETag in `If-Match`; nothing was changed."),
}
"""For the routes that take `If-Match`."""
NOT_MODIFIED: dict[int | str, dict[str, Any]] = {304: {"description": "It is what the ETag in `If-None-Match` says."}}
"""For the routes that take `If-None-Match`."""


def install(app: FastAPI) -> None:
    """Make every error of `app` a problem document."""
    app.add_exception_handler(RequestValidationError, _invalid_request)
    app.add_exception_handler(InvalidSpecError, _invalid_spec)
    app.add_exception_handler(InvalidChangesError, _invalid_changes)
    app.add_exception_handler(InvalidFilterError, _invalid_filter)
    app.add_exception_handler(KeyReusedError, _key_reused)
    app.add_exception_handler(ForbiddenError, _forbidden)
    app.add_exception_handler(NotFoundError, _not_found)
    app.add_exception_handler(StateConflictError, _conflict)
    app.add_exception_handler(FileElsewhereError, _file_elsewhere)
    app.add_exception_handler(RangeError, _no_such_range)
    app.add_exception_handler(EditedSince, _edited_since)
    app.add_exception_handler(NotModified, _not_modified)
    app.add_exception_handler(NoKeyError, _conflict)
    app.add_exception_handler(UserHasTooManyStreams, _user_has_too_many_streams)
    app.add_exception_handler(TooManyStreams, _too_many_streams)
    app.add_exception_handler(SchemaMissingError, _schema_missing)
    app.add_exception_handler(NoSuchMethod, _no_such_method)
    for silent in AWAY:
        app.add_exception_handler(silent, database_silent)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(Exception, _unexpected)


def problem(
    status: int,
    detail: str,
    *,
    errors: Iterable[FieldError] = (),
    headers: Mapping[str, str] | None = None,
    more: Mapping[str, str | None] | None = None,
) -> Response:
    """Return the answer for an error; `more` are members that only some have."""
    content = Problem(
        title=HTTPStatus(status).phrase,
        status=status,
        # A lone surrogate that a client sent would make the answer itself impossible to encode.
        detail=storable(detail),
        errors=[FieldError(field=storable(each.field), message=storable(each.message)) for each in errors],
        request_id=request_id(),
    )
    return JSONResponse(content.model_dump() | dict(more or {}), status, headers=headers, media_type=MEDIA_TYPE)


def body_too_large() -> Response:
    """Return the answer to a body above MAX_BODY_BYTES."""
    # The rest of the body is not read, so the connection cannot carry another request.
    return problem(413, f"the body is larger than {MAX_BODY_BYTES} bytes", headers={"Connection": "close"})


def body_of_two_lengths() -> Response:
    """Return the answer to a body that is announced as chunked and by a length (RFC 9112, section 6.1)."""
    # Whoever passed it on may go by the other one, and take a part of the body for somebody's next request.
    return problem(400, "send Content-Length or Transfer-Encoding, not both", headers={"Connection": "close"})


def unauthenticated(detail: str) -> Response:
    """Return the answer to a request that does not say, or not truly, on whose behalf it is made."""
    return problem(401, detail, headers={"WWW-Authenticate": 'Bearer realm="rankzero"'})


def forbidden(detail: str) -> Response:
    """Return the answer to a request that nothing would make allowed, whoever makes it."""
    return problem(403, detail)


def too_many(detail: str, wait_s: float) -> Response:
    """Return the answer to a request that comes too soon, by `wait_s` seconds."""
    return problem(429, detail, headers={"Retry-After": str(math.ceil(wait_s))})


def misdirected(detail: str) -> Response:
    """Return the answer to a request for a name that is not this service's."""
    return problem(421, detail)


async def database_silent(request: Request, error: Exception) -> Response:
    """Return the answer where the database does not."""
    log.warning("database_silent", path=request.url.path, error=str(error).splitlines()[0])
    return problem(503, "the database does not answer; try again later", headers={"Retry-After": "5"})


async def _invalid_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    if isinstance(error.body, bytes):
        return problem(415, "the body is not JSON by its header; send Content-Type: application/json")
    return _invalid_fields(error.errors(), of_spec=request.scope["route"].name in WITH_SPEC)


async def _invalid_spec(_request: Request, error: Exception) -> Response:
    assert isinstance(error, InvalidSpecError)
    return problem(422, str(error), errors=[FieldError(field=error.field, message=error.message)])


async def _invalid_changes(_request: Request, error: Exception) -> Response:
    assert isinstance(error.__cause__, ValidationError)
    return _invalid_fields(error.__cause__.errors(), within=f"{error}: ", of_spec=True)


async def _invalid_filter(_request: Request, error: Exception) -> Response:
    assert isinstance(error, InvalidFilterError)
    return problem(422, str(error), errors=[FieldError(field=error.parameter, message=error.message)])


async def _key_reused(_request: Request, error: Exception) -> Response:
    return problem(422, str(error), errors=[FieldError(field="Idempotency-Key", message=str(error))])


async def _forbidden(request: Request, error: Exception) -> Response:
    await refusals.note(request, str(error))
    return forbidden(str(error))


async def _not_found(_request: Request, error: Exception) -> Response:
    return problem(404, str(error))


async def _conflict(_request: Request, error: Exception) -> Response:
    return problem(409, str(error))


async def _edited_since(_request: Request, error: Exception) -> Response:
    return problem(412, str(error))


async def _not_modified(_request: Request, error: Exception) -> Response:
    assert isinstance(error, NotModified)
    return Response(status_code=304, headers={"ETag": error.tag})


async def _file_elsewhere(_request: Request, error: Exception) -> Response:
    assert isinstance(error, FileElsewhereError)
    return problem(409, str(error), more=error.location)


async def _no_such_range(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RangeError)
    return problem(416, str(error), headers={"Content-Range": f"bytes */{error.size_bytes}"})


async def _user_has_too_many_streams(_request: Request, error: Exception) -> Response:
    return too_many(str(error), STREAMS_WAIT_S)


async def _too_many_streams(_request: Request, error: Exception) -> Response:
    return problem(503, str(error), headers={"Retry-After": str(STREAMS_WAIT_S)})


async def _schema_missing(_request: Request, error: Exception) -> Response:
    return problem(503, str(error))


async def _no_such_method(request: Request, _error: Exception) -> Response:
    detail = f"{request.url.path} does not take {request.method}"
    return problem(405, detail, headers={"Allow": allowed(request)})


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if isinstance(error.__cause__, RecursionError):
        return problem(422, "the body is nested too deep", errors=[FieldError(field="body", message="nested too deep")])
    if error.status_code == 404:
        return problem(404, f"nothing at {request.url.path}; /docs has all paths")
    if error.status_code == 405:
        return await _no_such_method(request, error)
    if error.status_code == 413:
        return body_too_large()
    return problem(error.status_code, error.detail, headers=error.headers)


async def _unexpected(request: Request, error: Exception) -> Response:
    # The traceback follows in the server's own log: the framework raises the error again once this is answered.
    log.error("request_failed", path=request.url.path, method=request.method, error=type(error).__name__)
    return problem(500, "the service failed; its log says why")


def _invalid_fields(found: Iterable[Any], *, of_spec: bool, within: str = "") -> Response:
    wrong = _of_one_kind(found)
    errors = [_field_error(each, of_spec=of_spec) for each in wrong[:MOST_TOLD]]
    detail = within + "; ".join(f"{each.field}: {each.message}" for each in errors[:5])
    if len(wrong) > MOST_TOLD:
        detail += f"; {len(wrong)} fields are wrong, of which {MOST_TOLD} are listed"
    return problem(422, detail, errors=errors)


def _field_error(error: Mapping[str, Any], *, of_spec: bool) -> FieldError:
    named = error.get("ctx", {}).get("field")
    place = [str(part)[:LONGEST_NAME] for part in error["loc"] if part != "DeviceCount"]
    if error["type"] == "json_invalid":
        return FieldError(field="body", message=f"not JSON: {error['ctx']['error']} at character {error['loc'][-1]}")
    if place[0] == "query":
        del place[2:]  # a parameter that is repeated goes by its name alone
    path = place[1:] if place[0] in PLACES else place
    if error["type"] == "extra_forbidden":
        message = describe_unknown(path) if of_spec else NO_SUCH_FIELD
    else:
        message = error["msg"].removeprefix("Value error, ")
    return FieldError(field=named or ".".join(path) or place[0], message=message)


def _of_one_kind(errors: Iterable[Any]) -> list[Any]:
    """Leave out, for a device given as an object, the complaint that it is no string."""
    listed = list(errors)
    as_object = any("DeviceCount" in error["loc"] for error in listed)
    return [error for error in listed if not (as_object and error["loc"][-2:] == ("device", "str"))]
