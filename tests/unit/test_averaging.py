"""The moving average of a model's weights."""

import pytest
import torch
from torch import nn
from torchvision.models import get_model

from trainer.averaging import WeightAverage


def test_the_average_moves_towards_the_weights_by_its_decay() -> None:
    model = nn.Linear(2, 1, bias=False)
    average = WeightAverage(model, decay=0.75)
    expected = None
    for value in (1.0, 5.0, -3.0):
        nn.init.constant_(model.weight, value)
        average.update(model)
        expected = value if expected is None else 0.75 * expected + 0.25 * value
    assert average.model.weight.tolist() == [[pytest.approx(expected)] * 2]  # type: ignore[operator]  # a parameter


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
