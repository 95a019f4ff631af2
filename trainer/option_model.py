"""The option model: what a run's options and a recipe's have in common. Never imports torch."""

from typing import get_args

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError


class OptionModel(BaseModel):
    """Options by name: frozen, none but those that there are, and no truth value for a number."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_truth_values(cls, value: object, info: ValidationInfo) -> object:
        """Python counts `true` as 1, and no user does."""
        annotation = cls.model_fields[info.field_name or ""].annotation
        kinds = {annotation, *get_args(annotation)}
        if isinstance(value, bool) and kinds & {int, float} and bool not in kinds:
            raise PydanticCustomError("truth_value", "{value} is a truth value", {"value": str(value).lower()})
        return value
