"""What is wrong with a configuration, in one line for people."""

import re
from collections.abc import Sequence

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from trainer.names import closest, meant


def describe(error: ValidationError, *, options: Sequence[str] = (), outer: Sequence[str] = ()) -> str:
    """Name each field in error, what is wrong with it, and what was given.

    `options` are the names that there are, where it is a user who names them: an unknown one is then told what it may
    have meant. `outer` are those of the whole, where `options` are a part's.
    """
    return "; ".join(_described(part, options, outer) for part in error.errors(include_url=False))


def _described(part: ErrorDetails, options: Sequence[str], outer: Sequence[str]) -> str:
    field, given = ".".join(map(str, part["loc"])) or "the whole", part["input"]
    said = f"{field}: {part['msg']} (got {given!r:.100})"
    match part["type"]:
        case "not_of_scripts":  # whatever was given: it is the field that is out of place
            return f"{field}: {part['msg']}"
        case "extra_forbidden" if field in outer:
            return f"{field} is no option of this recipe; {field} stands beside `options`"
        case "extra_forbidden" if options:
            return f"{field:.100} is no option; {_meant(field, options)}"
        case "missing" if options:
            return f"{field}: has to be given"
        case "tuple_type" if isinstance(given, str):
            return f"{field}: write a list, [{given:.100}]"
        case "literal_error" if isinstance(given, str):
            near = closest(given, re.findall("'([^']+)'", part["ctx"]["expected"]))
            return f"{said}; did you mean {near}?" if near else said
        case _:
            return said


def _meant(name: str, options: Sequence[str]) -> str:
    near = meant(name, options)
    return f"did you mean {near}?" if near else "`python -m trainer catalog` lists all options"
