"""Parts of a model that are not trained."""

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torchvision.models import get_model

from trainer.config import TrainConfig
from trainer.errors import ConfigError
from trainer.freezing import freeze, held_batchnorm, set_training
from trainer.optimization import build_optimizer
from trainer.sync_batchnorm import has_batchnorm, synchronize_batchnorm

CONFIG = TrainConfig(model="resnet18", data="digits", weight_decay=0.1)


def network() -> nn.Module:
    torch.manual_seed(0)
    stem = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4))
    return nn.ModuleDict({"stem": stem, "stem2": nn.BatchNorm2d(4), "head": nn.Linear(4, 2)})


def trained(model: nn.Module) -> set[str]:
    return {name for name, parameter in model.named_parameters() if parameter.requires_grad}


def test_a_name_stands_for_a_module_with_all_below_it_or_for_one_parameter() -> None:
    model = network()
    freeze(model, ("stem", "head.bias"))
    assert trained(model) == {"stem2.weight", "stem2.bias", "head.weight"}
    optimizer = build_optimizer(CONFIG, model)
    assert sum(parameter.numel() for parameter in optimizer.param_groups[0]["params"]) == 4 + 4 + 8


@pytest.mark.parametrize(
    ("build", "name", "said"),
    [
        (lambda: get_model("resnet18"), "layer5", "has no part 'layer5'; did you mean layer4?"),
        (lambda: get_model("squeezenet1_1"), "feature.0", "did you mean features.0?"),
        (network, "xyz", "it is made of stem, stem2, head"),
    ],
)
def test_a_part_that_is_not_there_is_named_with_the_nearest(
    build: Callable[[], nn.Module], name: str, said: str
) -> None:
    with pytest.raises(ConfigError, match=r"^freeze: ") as refused:
        freeze(build(), (name,))
    assert said in str(refused.value)


def test_a_model_of_which_nothing_is_left_to_train_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^freeze: with stem, stem2, head nothing .* left to train"):
        freeze(network(), ("stem", "stem2", "head"))


def test_batchnorm_of_a_frozen_module_keeps_its_statistics_in_training_and_other_keeps_training() -> None:
    model = network()
    freeze(model, ("stem", "stem2.weight"))
    assert held_batchnorm(model, ("stem", "stem2.weight")) == {"stem.1"}
    set_training(model, ("stem", "stem2.weight"))
    modes = {name: layer.training for name, layer in model.named_modules()}
    assert not modes.pop("stem.1")
    assert all(modes.values())


def test_batchnorm_that_is_held_is_neither_synchronised_nor_a_reason_to_leave_samples_out() -> None:
    model = network()
    held = held_batchnorm(model, ("stem",))
    synchronize_batchnorm(model, device=torch.device("cpu"), has_idle_ranks=False, besides=held)
    assert type(model.get_submodule("stem.1")) is nn.BatchNorm2d
    assert type(model.get_submodule("stem2")) is not nn.BatchNorm2d
    assert has_batchnorm(model, besides=held)
    assert not has_batchnorm(model, besides=held_batchnorm(model, ("stem", "stem2")))
