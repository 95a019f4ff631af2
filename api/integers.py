"""Numbers and times in paths and queries, written in one way each: `/jobs/1_0` and `/jobs/010` are not job 10."""

import re

from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError

_DIGITS = re.compile(r"0|-?[1-9][0-9]*")


def _as_written(value: object) -> object:
    # Left to itself pydantic reads whatever Python's int() does: underscores, signs, blanks, leading zeros, ९.
    if isinstance(value, str) and not _DIGITS.fullmatch(value):
        raise PydanticCustomError("int_parsing", "must be a whole number in plain digits")
    return value


IN_DIGITS = BeforeValidator(_as_written)
"""What every integer parameter is annotated with, last: `Annotated[int, Field(ge=0), IN_DIGITS]`. The schema would lack
bounds that came after it."""


def _no_number(value: object) -> object:
    # Left to itself pydantic takes a number for the seconds, or milliseconds, since 1970.
    if isinstance(value, str) and re.fullmatch(r"[-+0-9.eE_\s]*", value) and not re.match(r"[0-9]{4}-", value):
        raise PydanticCustomError("datetime_parsing", "must be a time with its offset, such as 2026-11-30T06:00:00Z")
    return value


AS_A_DATE = BeforeValidator(_no_number)
"""What every time in a query is annotated with, last."""
