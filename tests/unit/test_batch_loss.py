"""The loss of a batch: what a recipe may return for it."""

import re
from typing import Any

import pytest
import torch
from torch import nn

from trainer.batch_loss import batch_loss
from trainer.config import TrainConfig
from trainer.errors import ConfigError
from trainer.recipes.classification import Classification


class Own(Classification):
    """A recipe of somebody's own, whose loss is what the test has it be."""

    name = "own"

    def loss(self, model: nn.Module, batch: Any) -> torch.Tensor:  # noqa: ARG002  (the protocol's signature)
        return batch  # type: ignore[no-any-return]  # whatever the test has it be


def loss_of(returned: object) -> torch.Tensor:
    config = TrainConfig(model="resnet18", data="digits")
    recipe: Any = Own(config)  # the protocol's class variables are plain attributes in ours
    return batch_loss(recipe, nn.Linear(1, 1), returned, config=config, device=torch.device("cpu"))


@pytest.mark.parametrize(
    ("returned", "complaint"),
    [
        (torch.ones(32), "recipe own: loss returns a tensor of shape (32,), and has to return a scalar, the mean over"),
        ({"loss": torch.ones(())}, "recipe own: loss returns dict, and no tensor"),
        (0.5, "recipe own: loss returns float, and no tensor"),
    ],
    ids=["of each sample", "dictionary", "number"],
)
def test_a_loss_that_is_no_scalar_is_refused_by_the_name_of_its_recipe(returned: object, complaint: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(complaint)):
        loss_of(returned)


def test_a_scalar_is_the_loss() -> None:
    assert loss_of(scalar := torch.ones(())) is scalar
