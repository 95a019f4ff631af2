"""Recipe options: what a recipe takes beside the options of every run. Never imports torch.

Recipes import these names from trainer.recipes.recipe, with all else that they need.
"""

from typing import TypeVar

from pydantic import ValidationError

from trainer.config import TrainConfig
from trainer.errors import ConfigError
from trainer.option_model import OptionModel
from trainer.validation import describe


class RecipeOptions(OptionModel):
    """A recipe's own options, which `options` of the config holds; each recipe derives its own from this."""


Options = TypeVar("Options", bound=RecipeOptions)


def options_of(config: TrainConfig, model: type[Options]) -> Options:
    """Return the recipe's own options of a config. Raises ConfigError naming each one in error."""
    try:
        return model.model_validate(config.options)
    except ValidationError as error:
        own, outer = tuple(model.model_fields), tuple(TrainConfig.model_fields)
        raise ConfigError(f"options: {describe(error, options=own, outer=outer)}") from error
