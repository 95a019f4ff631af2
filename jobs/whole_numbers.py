"""Whole numbers as JSON Schema has them: 3.0 is one, as no JSON says whether a number has a point."""

from typing import get_args

from pydantic import BaseModel, ValidationInfo, field_validator


class WholeNumbers(BaseModel):
    """A body whose fields of whole numbers are taken as they are, `strict`, but for a point with nothing behind it."""

    @field_validator("*", mode="before")
    @classmethod
    def _without_point(cls, value: object, info: ValidationInfo) -> object:
        annotation = cls.model_fields[info.field_name or ""].annotation
        if isinstance(value, float) and value.is_integer() and int in {annotation, *get_args(annotation)}:
            return int(value)
        return value
