"""A recipe's own options: the check of `train.options` against the JSON schemas that hosts have published."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from jsonschema import Draft202012Validator, SchemaError, ValidationError
from jsonschema.exceptions import best_match
from referencing import Registry
from referencing.exceptions import Unresolvable

from jobs.errors import InvalidSpecError
from trainer.config import TrainConfig
from trainer.names import closest

_FIELD = "train.options"
_SHOWN = 100
"""Characters of what was given that an answer shows: enough to know it by."""
_LONGEST = 1000
"""Characters of a message: a schema may list hundreds of names."""


def refuse_invalid_schema(schema: Mapping[str, Any]) -> None:
    """Raise ValueError for what is no JSON schema."""
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise ValueError(f"no JSON schema: {error.message} at {error.json_path}") from error


def check_options(options: Mapping[str, Any], schemas: Sequence[Mapping[str, Any]]) -> None:
    """Raise InvalidSpecError, naming the option, where none of the schemas, one for each host, takes these options."""
    found: ValidationError | None = None
    for schema in schemas:
        # A registry of its own keeps a reference to another place from being fetched there.
        validator = Draft202012Validator(schema, registry=Registry())
        try:
            error = best_match(validator.iter_errors(options))
        except Unresolvable:  # the trainer that published it has to say for itself what it takes
            return
        if error is None:
            return
        found = found or error
    if found is not None:
        raise _refusal(found)


def _refusal(error: ValidationError) -> InvalidSpecError:
    path = [_FIELD, *(_shown(str(part)) for part in error.absolute_path)]
    given = error.instance
    if error.validator == "additionalProperties" and isinstance(given, dict):
        known = list(cast("dict[str, Any]", error.schema).get("properties", {}))
        extra = next(name for name in given if name not in known)
        message = f"is no option of this recipe; {_way_out(extra, known, is_whole=not error.absolute_path)}"
        return InvalidSpecError(".".join([*path, _shown(extra)]), message[:_LONGEST])
    if error.validator == "required" and isinstance(given, dict):
        missing = next(name for name in cast("list[str]", error.validator_value) if name not in given)
        return InvalidSpecError(".".join([*path, missing]), "has to be given")
    message = error.message.replace(repr(given), _shown(repr(given)))
    return InvalidSpecError(".".join(path), message[:_LONGEST])


def _way_out(extra: str, known: Sequence[str], *, is_whole: bool) -> str:
    """Say what an unknown name may have meant; `is_whole` where it stands in `options` itself, not within one."""
    if is_whole and extra in TrainConfig.model_fields:
        return f"{extra} is a field of `train` itself, beside `options`"
    if near := closest(extra, known):
        return f"did you mean {near}?"
    return f"there are {', '.join(known)}" if known else "it has no options of its own"


def _shown(given: str) -> str:
    return given if len(given) <= _SHOWN else f"{given[:_SHOWN]}…"
