"""What the API takes and answers of secrets."""

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator
from pydantic_core import PydanticCustomError


class NewSecret(BaseModel):
    """A secret that is to be stored."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    value: Annotated[SecretStr, Field(min_length=1, max_length=65_536)]
    """What jobs find in their environment. It is stored sealed, and no answer shows it."""

    @field_validator("value")
    @classmethod
    def _fits_an_environment(cls, value: SecretStr) -> SecretStr:
        text = value.get_secret_value()
        if "\x00" in text or any("\ud800" <= character <= "\udfff" for character in text):
            raise PydanticCustomError("secret", "no process can be given a NUL or half a character")
        return value


class Secret(BaseModel):
    """A secret, without what it holds."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    name: str
    created_at: datetime
    updated_at: datetime
    updated_by: str | None
    """Who stored it last; null where no token was asked for."""
