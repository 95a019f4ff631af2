"""The OpenAPI schema: what FastAPI derives from the routes, made true and complete for whoever makes clients of it."""

from collections.abc import Callable, Iterator
from typing import Any

from api.errors import MEDIA_TYPE
from api.examples import BODIES

Operation = dict[str, Any]

TAGS = [
    {"name": "jobs", "description": "Submit jobs, find them, and say what is to become of them."},
    {"name": "hosts", "description": "The machines that train, and what an operator does with them and their devices."},
    {"name": "recipes", "description": "What the hosts can train, with the models and options of each recipe."},
    {"name": "data sets", "description": "What jobs can name as their data, and what lies there."},
    {"name": "quotas", "description": "How many devices a user's or a label's jobs hold at once, and their share."},
    {
        "name": "access",
        "description": "Who may use the service: users, tokens, secrets, the audit.",
    },
    {"name": "events", "description": "What happens, as it happens."},
    {"name": "webhooks", "description": "URLs that are told of what happens to jobs, and what became of each message."},
    {"name": "telemetry", "description": "What GPUs did: utilisation, memory, temperature, power."},
    {"name": "health", "description": "For load balancers and monitoring."},
]


def complete(schema: dict[str, Any]) -> None:
    """Make a schema say of each operation the errors that occur there and no others, with an example of each body."""
    operations = list(_operations(schema))
    for path, operation in operations:
        _keep_possible_errors(path, operation)
        _only_problems(operation["responses"])
        _add_headers(operation)
        _describe_events(operation["responses"])
        _add_examples(operation)
        for parameter in operation.get("parameters", []):
            _refuse_null(parameter["schema"])
    _link(operations)


def _operations(schema: dict[str, Any]) -> Iterator[tuple[str, Operation]]:
    for path, methods in schema["paths"].items():
        for operation in methods.values():
            yield path, operation


def _has_body(_path: str, operation: Operation) -> bool:
    return "requestBody" in operation


def _is_guarded(_path: str, operation: Operation) -> bool:
    return "security" in operation


_POSSIBLE: dict[str, Callable[[str, Operation], bool]] = {
    "400": _has_body,
    "401": _is_guarded,
    "403": _is_guarded,
    "404": lambda path, _operation: "{" in path or path == "/events",  # of jobs that are named in its query
    "413": _has_body,
    "415": _has_body,
    "421": _is_guarded,
    "422": lambda path, operation: _has_body(path, operation) or bool(operation.get("parameters")),
    "429": _is_guarded,
    "503": lambda path, _operation: path != "/healthz",
}
"""Of the errors that are documented for the whole application, where each may occur. A route adds its own."""


def _keep_possible_errors(path: str, operation: Operation) -> None:
    responses = operation["responses"]
    for status, is_possible in _POSSIBLE.items():
        if not is_possible(path, operation):
            responses.pop(status, None)


def _only_problems(responses: dict[str, Any]) -> None:
    # FastAPI files a response's model under the type of the route's own answers in any case.
    for response in responses.values():
        if MEDIA_TYPE in response.get("content", {}):
            response["content"] = {MEDIA_TYPE: response["content"][MEDIA_TYPE]}


EVENT = {
    "type": "object",
    "properties": {
        "event": {"type": "string", "description": "Its topic; or `hello`, `reset`, which are about the stream."},
        "id": {"type": "string", "description": "What a client that comes back sends as `Last-Event-ID`."},
        "data": {"type": "string", "contentMediaType": "application/json"},
        "retry": {"type": "integer", "description": "Milliseconds after which one that lost the stream comes back."},
    },
    "required": ["event", "data"],
}


def _describe_events(responses: dict[str, Any]) -> None:
    """Say of a stream what each event is, as OpenAPI 3.2 does; the whole of it is no text that ends."""
    for response in responses.values():
        if "text/event-stream" in response.get("content", {}):
            response["content"]["text/event-stream"] = {"itemSchema": EVENT}


_LOCATED = ("submit_job", "clone_job", "create_user", "create_webhook")
"""Operations that answer with something new, and where it is from then on."""


def _add_headers(operation: Operation) -> None:
    """Say what is to be read from the headers of an answer."""
    responses = operation["responses"]
    if operation["operationId"] in _LOCATED:
        _add_header(responses["201"], "Location", "Path of what is new.")
    if not {"304", "412"}.isdisjoint(responses):
        for status in {"200", "304"} & set(responses):
            _add_header(responses[status], "ETag", "For `If-None-Match`, and for `If-Match` where that is taken.")
    if "401" in responses:
        _add_header(responses["401"], "WWW-Authenticate", "How to authenticate: `Bearer`.")
    if "429" in responses:
        _add_header(responses["429"], "Retry-After", "Seconds to wait.", {"type": "integer", "minimum": 1})


def _add_header(response: dict[str, Any], name: str, text: str, kind: dict[str, Any] | None = None) -> None:
    header = {"description": text, "required": True, "schema": kind or {"type": "string"}}
    response.setdefault("headers", {})[name] = header


def _add_examples(operation: Operation) -> None:
    for media in operation.get("requestBody", {}).get("content", {}).values():
        if examples := BODIES.get(operation["operationId"]):
            media["examples"] = {name: {"value": value} for name, value in examples.items()}


def _refuse_null(schema: dict[str, Any]) -> None:
    """A parameter that may be left out is not one that may be null: in a path, a query or a header that is a word."""
    kinds = [kind for kind in schema.get("anyOf", []) if kind != {"type": "null"}]
    if len(kinds) == 1:
        del schema["anyOf"]
        schema.update(kinds[0])
    elif kinds:
        schema["anyOf"] = kinds


def _link(operations: list[tuple[str, Operation]]) -> None:
    """Say of an answer with a new job what may be done with that job by its id."""
    links = {
        operation["operationId"]: {
            "operationId": operation["operationId"],
            "parameters": {"job_id": "$response.body#/id"},
        }
        for path, operation in operations
        if path.startswith("/jobs/{job_id}") and path.count("{") == 1
    }
    for path, operation in operations:
        if path in ("/jobs", "/jobs/{job_id}/clone") and "201" in operation["responses"]:
            operation["responses"]["201"]["links"] = links
