"""Whole numbers in paths and queries, written in one way each: `/jobs/1_0` and `/jobs/010` are not job 10."""

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
