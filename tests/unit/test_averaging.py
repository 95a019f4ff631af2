"""The moving average of a model's weights."""

import pytest
import torch
from torch import nn
from torchvision.models import get_model

from trainer.averaging import WeightAverage


def test_the_average_moves_towards_the_weights_by_a_decay_that_is_approached_from_below() -> None:
    model = nn.Linear(1, 1, bias=False)
    average = WeightAverage(model, decay=0.2)
    expected = 1.0
    for number, value in enumerate((1.0, 5.0, -3.0, 2.0)):
        nn.init.constant_(model.weight, value)
        average.update(model)
        decay = min(0.2, (1 + number) / (10 + number)) if number else 0
        expected = decay * expected + (1 - decay) * value
    assert average.model.get_parameter("weight").item() == pytest.approx(expected)


def test_an_average_continues_at_the_step_of_its_checkpoint() -> None:
    model = nn.Linear(1, 1, bias=False)
    whole, first, second = (WeightAverage(model, decay=0.9) for _ in range(3))
    for step in range(6):
        nn.init.constant_(model.weight, float(step**2))
        whole.update(model)
        if step == 3:
            second.model.load_state_dict(first.model.state_dict())
            second.continue_at(3)
        (first if step < 3 else second).update(model)
    assert second.model.get_parameter("weight").equal(whole.model.get_parameter("weight"))


@pytest.mark.parametrize("name", ["swin_t", "resnet18"])
def test_a_model_that_does_not_change_is_its_own_average_indices_and_counts_included(name: str) -> None:
    model = get_model(name, weights=None, num_classes=2)
    with torch.no_grad():
        for buffer in model.buffers():
            buffer.add_(3)
    average = WeightAverage(model, decay=0.9)
    for _ in range(50):
        average.update(model)
    state, averaged = model.state_dict(), average.model.state_dict()
    assert state.keys() == averaged.keys()
    assert [key for key in state if not torch.allclose(state[key], averaged[key], rtol=1e-6, atol=0)] == []
    assert [key for key in state if not state[key].is_floating_point() and not state[key].equal(averaged[key])] == []


def test_a_buffer_that_is_never_finite_is_copied() -> None:
    model = nn.Linear(2, 1)
    model.register_buffer("mask", torch.tensor([0.0, float("-inf")]))
    average = WeightAverage(model, decay=0.9)
    for _ in range(3):
        average.update(model)
    assert average.model.get_buffer("mask").tolist() == [0.0, float("-inf")]
