"""Sparse answers: of each item only the fields that a client asks for, by `fields=id,name,state`.

They have a media type of their own: what is promised of `application/json`, that every field is there, holds for all
answers of that type, and clients that are made of the schema may rely on it.
"""

from typing import Annotated, Any, TypeVar

from fastapi import Response
from pydantic import AfterValidator, BaseModel, Field
from pydantic_core import PydanticCustomError

from api.fleet import Host
from api.models import Attempt, Checkpoint, Event, Job

Answer = TypeVar("Answer", bound=BaseModel)


class SparseAnswer(Response):
    """A part of an answer."""

    media_type = "application/vnd.rankzero.sparse+json"


SPARSE: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {
            SparseAnswer.media_type: {
                "schema": {"type": "object", "description": "The same, with only those `fields` that were asked for."}
            }
        }
    }
}
"""For the routes that take `fields`."""


def picked(answer: Answer, fields: str | None) -> Answer | SparseAnswer:
    """Return an answer with only these fields, separated by commas: of each item where it is a list; None takes all."""
    if fields is None:
        return answer
    wanted: Any = set(fields.split(","))
    if "items" in type(answer).model_fields:
        wanted = dict.fromkeys(type(answer).model_fields, True) | {"items": {"__all__": wanted}}
    return SparseAnswer(answer.model_dump_json(include=wanted))


def _of(model: type[BaseModel]) -> tuple[AfterValidator, Any]:
    """What makes a parameter name fields of a model."""
    names = [*model.model_fields, *model.model_computed_fields]

    def refuse_unknown(fields: str | None) -> str | None:
        for field in fields.split(",") if fields is not None else ():
            if field not in names:
                raise PydanticCustomError(
                    "fields", "{known}", {"known": f"there is no field {field!r}; there are {', '.join(names)}"}
                )
        return fields

    one = f"({'|'.join(names)})"
    return AfterValidator(refuse_unknown), Field(
        description="Only these fields of each item, separated by commas; the answer then has a media type of its own.",
        json_schema_extra={"pattern": f"^{one}(,{one})*$"},
    )


AttemptFields = Annotated[str | None, *_of(Attempt)]
CheckpointFields = Annotated[str | None, *_of(Checkpoint)]
EventFields = Annotated[str | None, *_of(Event)]
HostFields = Annotated[str | None, *_of(Host)]
JobFields = Annotated[str | None, *_of(Job)]
