"""ETags: whether a client's copy is the newest, and whether what it is about to change is still what it has seen.

A tag is `"<edition>.<answer>"`: a digest of what users edit of a thing, and one of the whole answer. `If-None-Match`
goes by both. `If-Match` goes by the edition alone: that a job has trained on is no reason to refuse it a new priority.
"""

import hashlib
import json
import re
from typing import Annotated, TypeVar

from fastapi import Depends, Header, Response
from pydantic_core import to_jsonable_python

Shown = TypeVar("Shown")

_TAG = re.compile(r'(?:W/)?"([\x21\x23-\x7e\x80-\xff]*)"')


class NotModified(Exception):
    """The client's copy is the newest."""

    def __init__(self, tag: str) -> None:
        super().__init__(tag)
        self.tag = tag


class EditedSince(Exception):
    """What the client is about to change is not what it has seen. Nothing was written."""


class Tagged:
    """The answer of a route that shows one thing: `Annotated` as `Tags`."""

    def __init__(
        self,
        response: Response,
        if_none_match: Annotated[
            str | None, Header(description="An ETag: where the answer is still the same, it is a 304 without a body.")
        ] = None,
    ) -> None:
        self._response = response
        self._known = listed(if_none_match)

    def shown(self, answer: Shown, **edited: object) -> Shown:
        """Return the answer, with an ETag; `edited` is what users edit of it. Raises NotModified where it is known."""
        tag = _tag(answer, edited)
        response = answer if isinstance(answer, Response) else self._response
        response.headers["ETag"] = f'"{tag}"'
        if tag in self._known or "*" in self._known:
            raise NotModified(f'"{tag}"')
        return answer


class Expected:
    """What a client that changes a thing takes it to be: `Annotated` as `IfMatch`."""

    def __init__(
        self,
        response: Response,
        if_match: Annotated[
            str | None,
            Header(description="The ETag of what is to be changed: where somebody else has edited it since, a 412."),
        ] = None,
    ) -> None:
        self._response = response
        self._editions = None if if_match is None else {tag.partition(".")[0] for tag in listed(if_match)}

    def check(self, name: str, **edited: object) -> None:
        """Refuse a change of what is not as expected. Call it with the row held, in the transaction that changes it.

        `edited` is what users edit of it, as given to `Tagged.shown`; nothing where it is not there. Raises
        EditedSince.
        """
        if self._editions is None or (edited and ("*" in self._editions or _digest(edited) in self._editions)):
            return
        what = "has been edited since that ETag was made" if edited else "is not there"
        raise EditedSince(f"{name} {what}: read it again, and decide anew")

    def changed(self, answer: Shown, **edited: object) -> Shown:
        """Return the answer to a change, with its new ETag."""
        self._response.headers["ETag"] = f'"{_tag(answer, edited)}"'
        return answer


Tags = Annotated[Tagged, Depends()]
IfMatch = Annotated[Expected, Depends()]


def listed(header: str | None) -> set[str]:
    """Return the tags in a header, without their quotes; weak ones too, as a proxy that compresses makes them."""
    if header is None:
        return set()
    return {"*"} if header.strip() == "*" else set(_TAG.findall(header))


def _tag(answer: object, edited: object) -> str:
    # Of a part of a thing, which is an answer already, the body.
    return f"{_digest(edited)}.{_digest(bytes(answer.body).decode() if isinstance(answer, Response) else answer)}"


def _digest(value: object) -> str:
    text = json.dumps(to_jsonable_python(value), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
