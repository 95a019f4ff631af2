"""What `batch: -1` becomes: the search, the probe that leaves no trace, and the batch that all ranks agree on."""

import copy
import math
import random
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.utils.data import Dataset, TensorDataset

from trainer.autobatch import CPU_BATCH, HEADROOM, Probe, largest_batch, resolve_batch
from trainer.config import TrainConfig
from trainer.environment import RankEnvironment
from trainer.errors import Cause, ConfigError, DeviceMemoryError
from trainer.faults import cause_of
from trainer.optimization import set_learning_rate
from trainer.process_group import ProcessGroup
from trainer.recipes.recipe import TaskData
from trainer.recipes.registry import recipe_type

MIB = 2**20


class Images(Dataset[Any]):
    """Random images, which draw from every generator that augmentation might."""

    def __init__(self, count: int, *, size: int = 8) -> None:
        self.count, self.size = count, size

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return torch.rand(3, self.size, self.size) + random.random() + float(np.random.rand()), index % 2


class LimitedProbe(Probe):
    """A probe on a device that has memory for `limit` samples: it learns that after it has trained on them."""

    limit = 0

    def step(self, batch: int) -> None:
        set_learning_rate(self.optimizer, 0.1)  # for the weights to change
        super().step(batch)
        if batch > self.limit:
            raise torch.OutOfMemoryError("CUDA out of memory.")


def config(**options: Any) -> TrainConfig:
    return TrainConfig.model_validate({"model": "mine", "data": "drawn", "batch": -1} | options)


def as_data(train: Dataset[Any]) -> TaskData:
    return TaskData(train=train, val=train, samples="")


def network(*, width: int = 4) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, width, 3), nn.BatchNorm2d(width), nn.Dropout(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.BatchNorm1d(width), nn.Linear(width, 2),
    )  # fmt: skip


def limited_probe(limit: int, model: nn.Module, **options: Any) -> LimitedProbe:
    probe = LimitedProbe(
        config(**options), recipe_type("classification")(config()), model, as_data(Images(5)), keeps_gradients=True
    )
    probe.limit = limit
    return probe


def resolve(options: TrainConfig, *, ranks: int = 1, samples: int = 10_000, split_among: int = 1) -> list[int]:
    """What each of the ranks resolves the batch to."""
    store = dist.HashStore() if ranks > 1 else None  # type: ignore[attr-defined]  # exported where torch has one
    return [
        resolve_batch(
            options,
            group=ProcessGroup(RankEnvironment(rank, rank, ranks, ranks), torch.device("cpu"), store),
            recipe=recipe_type("classification")(config()),
            model=network(),
            data=as_data(TensorDataset(torch.zeros(samples))),
            split_among=split_among,
        )
        for rank in range(ranks)
    ]


def generators() -> list[Any]:
    states: list[Any] = [random.getstate(), str(np.random.get_state()), torch.get_rng_state().tolist()]
    return [*states, torch.cuda.get_rng_state().tolist()] if torch.cuda.is_available() else states


@settings(deadline=None)
@given(limit=st.integers(0, 3000), at_most=st.integers(1, 2000))
def test_the_search_finds_the_largest_batch_that_fits_in_few_trials(limit: int, at_most: int) -> None:
    trials: list[int] = []

    def fits(batch: int) -> bool:
        trials.append(batch)
        return batch <= limit

    assert largest_batch(fits, at_most=at_most) == min(limit, at_most)
    assert trials[0] == 1
    assert len(trials) == len(set(trials)) <= 2 * math.log2(at_most) + 2
    assert all(batch <= 2 * max(limit, 1) and batch <= at_most for batch in trials)


@settings(deadline=None)
@given(fitting=st.sets(st.integers(1, 200)), at_most=st.integers(1, 200))
def test_the_search_returns_only_what_was_seen_to_fit(fitting: set[int], at_most: int) -> None:
    found = largest_batch(lambda batch: batch in fitting, at_most=at_most)
    assert found in fitting | {0}
    assert found <= at_most


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_a_probe_leaves_weights_statistics_gradients_and_generators_as_they_were(optimizer: str) -> None:
    torch.manual_seed(3)
    model = network()
    model.get_submodule("1").eval()
    kernel = model.get_parameter("0.weight")
    kernel.grad = torch.ones_like(kernel)
    model.get_parameter("0.bias").requires_grad_(False)
    tensors = {name: (value, value.clone()) for name, value in model.state_dict(keep_vars=True).items()}
    before, modes = generators(), [layer.training for layer in model.modules()]
    changed: list[bool] = []
    probe = limited_probe(37, model, optimizer=optimizer)
    step = probe.step

    def observed_step(batch: int) -> None:
        try:
            step(batch)
        finally:
            changed.append(not torch.equal(kernel, tensors["0.weight"][1]) and generators() != before)

    probe.step = observed_step  # type: ignore[method-assign]  # to look at each step that it takes
    assert probe.largest_batch(at_most=1000) == 37
    assert all(changed)
    assert len(changed) > 5
    now = model.state_dict(keep_vars=True)
    assert all(now[name] is value and torch.equal(value, saved) for name, (value, saved) in tensors.items())
    assert [layer.training for layer in model.modules()] == modes
    assert generators() == before
    assert torch.equal(kernel.grad, torch.ones_like(kernel))
    assert all(parameter.grad is None for name, parameter in model.named_parameters() if name != "0.weight")


def test_a_probe_s_own_steps_do_not_move_the_weights_whatever_the_learning_rate() -> None:
    model = network()
    weights = copy.deepcopy(model.get_parameter("6.weight"))
    probe = Probe(config(lr=1e6), recipe_type("classification")(config()), model, as_data(Images(3)))
    probe.step(1)
    probe.step(5)
    assert torch.equal(model.get_parameter("6.weight"), weights)
    assert model.get_buffer("1.num_batches_tracked") == 1  # a single sample is nothing to normalise by


def test_a_device_without_memory_for_one_sample_is_an_error_that_says_what_takes_less() -> None:
    model, before = network(), generators()
    weights = copy.deepcopy(model.state_dict())
    with pytest.raises(
        DeviceMemoryError, match=r"batch: -1 .* cpu .* mine .* single sample; use .* image_size"
    ) as raised:
        limited_probe(0, model).largest_batch(at_most=10)
    assert cause_of(raised.value) is Cause.OUT_OF_MEMORY
    assert all(torch.equal(value, weights[name]) for name, value in model.state_dict().items())
    assert generators() == before


def test_an_error_of_the_model_s_own_is_not_taken_for_a_lack_of_memory() -> None:
    probe = Probe(config(), recipe_type("classification")(config()), nn.Linear(3, 2), as_data(Images(3)))
    with pytest.raises(RuntimeError, match="shapes"):
        probe.largest_batch(at_most=10)


@pytest.mark.parametrize(
    ("options", "where", "expected"),
    [
        ({}, {}, CPU_BATCH),
        ({}, {"ranks": 3}, 3 * CPU_BATCH),
        ({}, {"split_among": 4}, 4 * CPU_BATCH),
        ({"nbs": 40}, {"ranks": 3}, 39),
        ({"nbs": 1000}, {"ranks": 3}, 3 * CPU_BATCH),
        ({"nbs": 3}, {"ranks": 3}, 3),
        ({}, {"samples": 5}, 5),
        ({}, {"ranks": 2, "samples": 5}, 6),
        ({}, {"ranks": 4, "samples": 1}, 4),
    ],
)
def test_on_the_cpu_every_rank_gets_the_default_within_the_limits(
    options: dict[str, Any], where: dict[str, int], expected: int
) -> None:
    ranks = resolve(config(**options), **where)
    assert ranks == [expected] * len(ranks)


def test_a_limit_below_one_sample_for_each_device_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"nbs: .* 2 samples do not go round 3 devices; the least for them is 3"):
        resolve(config(nbs=2), split_among=3)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU: measures what fits into a CUDA device's memory")
def test_the_batch_found_on_a_gpu_is_more_than_nine_tenths_of_the_largest_that_fits() -> None:
    device = torch.device("cuda", 0)
    model = network(width=64).to(device)
    options = config(optimizer="adamw", amp="bf16", nbs=100_000, ema=0.9)
    group = ProcessGroup(RankEnvironment(0, 0, 1, 1), device, None)
    data, recipe = as_data(Images(100_000, size=64)), recipe_type("classification")(config())
    weights, before = copy.deepcopy(model.state_dict()), generators()
    limit = 1024 * MIB / torch.cuda.get_device_properties(device).total_memory  # filling all of it would take long
    torch.cuda.set_per_process_memory_fraction(limit, device)
    try:
        found = resolve_batch(options, group=group, recipe=recipe, model=model, data=data)
        assert generators() == before
        assert all(torch.equal(value, weights[name]) for name, value in model.state_dict().items())
        assert all(parameter.grad is None for parameter in model.parameters())
        assert torch.cuda.get_per_process_memory_fraction(device) == pytest.approx(limit)
        probe = Probe(options, recipe, model, data, keeps_gradients=True)

        def fits(batch: int) -> bool:
            torch.cuda.empty_cache()
            try:
                probe.step(batch)
            except torch.OutOfMemoryError:
                return False
            return True

        largest = largest_batch(fits, at_most=100_000)
        assert 1 < largest < 100_000
        assert 0.9 * largest <= found <= largest
        torch.cuda.reset_peak_memory_stats(device)
        torch.cuda.empty_cache()
        probe.step(found)
        assert torch.cuda.max_memory_allocated(device) <= (1 - HEADROOM) * 1024 * MIB
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0, device)
