"""The scale of a loss in fp16: what it does to a step, and when it is not the scale that is wrong."""

import math

import pytest
import torch
from torch import nn, optim

from trainer.config import TrainConfig
from trainer.errors import ConfigError, NonFiniteLossError
from trainer.loss_scaling import SMALLEST_SCALE, LossScaling
from trainer.optimization import build_optimizer, clip_gradients
from trainer.precision import autocast, refuse_unsupported

CPU = torch.device("cpu")


def config(amp: str | None) -> TrainConfig:
    return TrainConfig.model_validate({"model": "resnet18", "data": "digits", "amp": amp, "lr": 0.5})


class Trained:
    """A single weight of 1, trained on a loss that is a multiple of it."""

    def __init__(self, amp: str | None) -> None:
        self.scaling = LossScaling(config(amp), CPU)
        self.weight = nn.Parameter(torch.ones(1))
        self.optimizer = optim.SGD([self.weight], lr=0.5)
        self.number = 0

    def step(self, slope: float) -> bool:
        """Take a step whose gradient is `slope`."""
        self.number += 1
        self.optimizer.zero_grad()
        self.scaling.scaled((slope * self.weight).sum()).backward()  # type: ignore[no-untyped-call]  # torch's own is
        self.scaling.unscale(self.optimizer)
        return self.scaling.step(self.optimizer, number=self.number, rank=3)


@pytest.mark.parametrize("amp", [None, "bf16", "fp16"])
def test_a_finite_gradient_moves_the_weights_by_its_own_size(amp: str | None) -> None:
    trained = Trained(amp)
    assert trained.step(0.25)
    assert trained.weight.item() == 1 - 0.5 * 0.25
    assert trained.scaling.skipped_steps == 0


def test_a_gradient_that_is_not_finite_moves_nothing_halves_the_scale_and_is_counted() -> None:
    trained = Trained("fp16")
    assert trained.step(1.0)
    assert not trained.step(math.inf)
    assert not trained.step(math.nan)
    assert trained.step(1.0)
    assert trained.weight.item() == 0
    assert trained.scaling.skipped_steps == 2
    state = trained.scaling.state()
    assert state is not None
    assert state["scale"] == 2**14


def test_where_every_step_overflows_it_is_an_error_and_no_endless_run() -> None:
    trained = Trained("fp16")

    def train() -> None:
        while not trained.step(math.inf):
            assert trained.number < 100

    with pytest.raises(NonFiniteLossError, match=r"^gradients .* at step 30 on rank 3, .* amp fp16 .* amp: bf16"):
        train()
    assert trained.weight.item() == 1
    state = trained.scaling.state()
    assert state is not None
    assert SMALLEST_SCALE / 2 <= state["scale"] < SMALLEST_SCALE


def test_a_run_whose_every_step_overflowed_ends_with_a_warning() -> None:
    trained = Trained("fp16")
    assert trained.scaling.warning(0) is None
    for _ in range(2):
        trained.step(math.inf)
    said = trained.scaling.warning(trained.number)
    assert said is not None
    assert said.startswith("no weight was trained: the gradients of each of the 2 steps overflowed")
    trained.step(1.0)
    assert trained.scaling.warning(trained.number) is None


def test_a_restored_scale_goes_on_where_it_was_and_another_precision_begins_its_own() -> None:
    trained, other = Trained("fp16"), Trained("fp16")
    for slope in (1.0, math.inf, 1.0):
        trained.step(slope)
    other.scaling.restore(trained.scaling.state(), skipped_steps=1)
    assert other.scaling.state() == trained.scaling.state()
    assert not other.step(math.inf)
    assert other.scaling.skipped_steps == 2

    fresh = Trained("fp16")
    fresh.scaling.restore(None, skipped_steps=4)
    assert fresh.scaling.state() == Trained("fp16").scaling.state()
    plain = Trained(None)
    plain.scaling.restore(trained.scaling.state(), skipped_steps=4)
    assert plain.step(1.0)
    assert (plain.scaling.state(), plain.scaling.skipped_steps) == (None, 4)


@pytest.mark.parametrize(("largest", "left"), [(2.5, 0.5), (5.0, 1.0), (10.0, 1.0)])
def test_gradients_are_limited_as_one_vector_and_their_own_norm_is_returned(largest: float, left: float) -> None:
    model = nn.ModuleDict({"a": nn.Linear(1, 1, bias=False), "b": nn.Linear(1, 1, bias=False), "none": nn.Linear(1, 1)})
    optimizer = build_optimizer(config(None), model)
    for name, value in (("a.weight", 3.0), ("b.weight", -4.0)):
        model.get_parameter(name).grad = torch.tensor([[value]])
    assert clip_gradients(optimizer, largest).item() == pytest.approx(5)
    limited = [model.get_parameter(name).grad for name in ("a.weight", "b.weight")]
    assert [gradient.item() for gradient in limited if gradient is not None] == pytest.approx(
        [3 * left, -4 * left], rel=1e-5
    )


@pytest.mark.parametrize("amp", ["bf16", "fp16"])
def test_the_cpu_computes_in_each_precision_and_is_asked_before_anything_begins(amp: str) -> None:
    refuse_unsupported(config(amp), CPU)
    with autocast(config(amp), CPU):
        assert nn.Linear(2, 2)(torch.ones(1, 2)).dtype is {"bf16": torch.bfloat16, "fp16": torch.float16}[amp]


def test_a_device_that_has_no_mixed_precision_is_refused() -> None:
    refuse_unsupported(config(None), torch.device("meta"))
    with pytest.raises(ConfigError, match=r"^amp: fp16 does not work on meta"):
        refuse_unsupported(config("fp16"), torch.device("meta"))
