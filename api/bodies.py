"""What the body of a request may be: how large, how deep, of how many values, each key once, each number finite."""

import json
import math
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from api import errors

MAX_DEPTH = 32
"""Lists and objects within each other. What is valid has a few; what has hundreds could be stored and never shown."""
MOST_VALUES = 10_000
"""Values in a body, each list, object and key counted. Were all of several hundred thousand wrong, all other requests
would wait for seconds until each had its own error."""


class AnnouncedLimit:
    """ASGI middleware: an announced body that is too large is refused in the same form as any other error, and so is
    one that is announced in two ways.

    FastAPI counts what arrives and refuses that by itself; only for an announced length it answers in plain text.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope) if scope["type"] == "http" else Headers()
        if "content-length" in headers and "transfer-encoding" in headers:
            await errors.body_of_two_lengths()(scope, receive, send)
        elif _announced_bytes(headers) > errors.MAX_BODY_BYTES:
            await errors.body_too_large()(scope, receive, send)
        else:
            await self.app(scope, receive, send)


async def refuse_ambiguous(request: Request) -> None:
    """A dependency of every route: refuse what is no JSON to the letter, or means one thing here and another elsewhere.

    Python's reader takes NaN, numbers beyond all bounds, and the last of two values for one key.
    """
    body = await request.body() if _is_json(request.headers) else b""
    if not body:
        return
    try:
        value = json.loads(body, object_pairs_hook=_each_key_once, parse_constant=_refuse_constant, parse_float=_finite)
    except (ValueError, RecursionError):
        return  # FastAPI has read it already, and says what is wrong with it, where the route takes a body at all
    if not _are_few(value):
        raise _refusal(f"more than {MOST_VALUES} values; a body has to be smaller than that")
    if not _is_shallow(value, MAX_DEPTH):
        raise _refusal(f"nested deeper than {MAX_DEPTH} levels")
    if not _is_text(value):
        raise _refusal("text with half a character in it (a lone surrogate), which no answer could show")


def _announced_bytes(headers: Headers) -> int:
    length = headers.get("content-length", "")
    return int(length) if length.isdecimal() else 0


def _is_json(headers: Headers) -> bool:
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind.startswith("application/") and (kind == "application/json" or kind.endswith("+json"))


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _refusal(f"the key {key[: errors.LONGEST_NAME]!r} is given twice")
        found[key] = value
    return found


def _refuse_constant(name: str) -> None:
    raise _refusal(f"{name} is not JSON; a number has to be finite")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise _refusal(f"{text[:32]} is larger than any number here can be")
    return number


def _are_few(value: object) -> bool:
    found, waiting = 0, [value]
    while waiting and found <= MOST_VALUES:
        part = waiting.pop()
        found += 1
        if isinstance(part, dict):
            found += len(part)  # a key can be wrong as a value can
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)
    return found <= MOST_VALUES


def _is_shallow(value: object, depth: int) -> bool:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return parts is None or (depth > 0 and all(_is_shallow(part, depth - 1) for part in parts))


def _is_text(value: object) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _refusal(message: str) -> RequestValidationError:
    return RequestValidationError([{"type": "value_error", "loc": ("body",), "msg": message, "input": None}])
