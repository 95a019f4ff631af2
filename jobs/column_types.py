"""What is stored in columns, alike on both databases: aware times, clean text and JSON, and JSON objects as rows."""

import json
import re
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import DateTime, Dialect, Integer
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import GenericFunction
from sqlalchemy.types import TypeDecorator

_ESCAPED_NUL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")


class UtcDateTime(TypeDecorator[datetime]):
    """An aware UTC time on both databases. SQLite has no such type: it keeps the UTC wall time without its zone."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value!r} has no time zone")
        utc = value.astimezone(UTC)
        return utc.replace(tzinfo=None) if dialect.name == "sqlite" else utc

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002  # TypeDecorator's signature
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def storable(text: str) -> str:
    """Text as every database takes it and every client can be sent it: neither NUL nor lone surrogates."""
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def storable_json(value: object) -> str:
    """JSON with storable text in it. What runs report (a message, a path) holds whatever their code put there."""
    text = json.dumps(value, ensure_ascii=False)
    if r"\u0000" in text:  # the search by itself takes longer than all the rest
        text = _ESCAPED_NUL.sub(r"\1\\ufffd", text)
    return storable(text)


class json_each_text(GenericFunction[Any]):  # noqa: N801  # named as the SQL function is
    """The pairs of a JSON object as rows of text. Unlike a path into it, this takes any key: quotes, dots, emoji."""

    inherit_cache = True


@compiles(json_each_text, "sqlite")
def _json_each(function: json_each_text, compiler: SQLCompiler, **options: Any) -> str:
    return f"json_each{compiler.function_argspec(function, **options)}"


class octet_length(GenericFunction[int]):  # noqa: N801  # named as the SQL function is
    """Bytes of a text as UTF-8. SQLite has such a function only from 3.43 on."""

    type = Integer()
    inherit_cache = True


@compiles(octet_length, "sqlite")
def _octet_length(function: octet_length, compiler: SQLCompiler, **options: Any) -> str:
    return f"length(CAST({compiler.process(function.clauses, **options)} AS BLOB))"
