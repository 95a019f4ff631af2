"""How large a spec may be: a list of jobs shows up to a thousand of them, each whole."""

import json
from typing import Any

from jobs.errors import InvalidSpecError

MOST_BYTES = 64 * 1024
"""Of a spec as JSON. A spec of one of our recipes has about 2 KiB; what is large belongs into a file of the host."""


def refuse_large(spec: dict[str, Any]) -> None:
    """Refuse a spec, in its stored form, that is larger as JSON; names the field that has the most of it.

    Raises InvalidSpecError.
    """
    whole = _bytes_of(spec)
    if whole <= MOST_BYTES:
        return
    field, size = _largest(spec)
    if field == "train" and isinstance(spec[field], dict):
        within, size = _largest(spec[field])
        field = f"train.{within}"
    raise InvalidSpecError(
        field,
        f"has {size} bytes as JSON, of {whole} in all; a job may have {MOST_BYTES}: name a file of the host instead",
    )


def _largest(fields: dict[str, Any]) -> tuple[str, int]:
    sizes = {name: _bytes_of(value) for name, value in fields.items()}
    name = max(sizes, key=lambda each: sizes[each])
    return name, sizes[name]


def _bytes_of(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="surrogatepass"))
