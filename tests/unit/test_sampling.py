"""Which samples each rank takes: exactly its share, whatever the number of ranks."""

import itertools
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader, TensorDataset

from trainer.data.seeded import SeededSamples
from trainer.normalization import Normalization
from trainer.sampling import GlobalBatchSampler, ShardSampler


def dataset(samples: int) -> TensorDataset:
    return TensorDataset(torch.arange(samples))


def sampler(samples: int, *, batch: int, rank: int, world_size: int, **options: Any) -> GlobalBatchSampler:
    return GlobalBatchSampler(dataset(samples), batch=batch, rank=rank, world_size=world_size, seed=7, **options)


def local_batches(
    samples: int, *, batch: int, rank: int, world_size: int, epoch: int = 0, step: int = 0
) -> list[list[int]]:
    """What a rank's loader yields, less the repeated sample of a rank that has none of its own."""
    own = sampler(samples, batch=batch, rank=rank, world_size=world_size)
    own.start_at(epoch, step)
    loader = DataLoader(SeededSamples(dataset(samples), seed=7), batch_sampler=own)
    batches = [sample.tolist() for (sample,) in loader]
    assert len(batches) == own.steps_per_epoch - step
    return [part[: own.local_size(step + index)] for index, part in enumerate(batches)]


def global_batches(samples: int, *, batch: int, world_size: int, epoch: int = 0, step: int = 0) -> list[list[int]]:
    """The samples of each step over all ranks together."""
    ranks = [
        local_batches(samples, batch=batch, rank=rank, world_size=world_size, epoch=epoch, step=step)
        for rank in range(world_size)
    ]
    return [sorted(itertools.chain(*parts)) for parts in zip(*ranks, strict=True)]


@settings(deadline=None, max_examples=60)
@given(samples=st.integers(1, 60), per_rank=st.integers(1, 6), world_size=st.sampled_from([2, 3, 4]))
def test_each_step_takes_the_same_samples_on_any_number_of_ranks(samples: int, per_rank: int, world_size: int) -> None:
    batch = per_rank * world_size
    alone = global_batches(samples, batch=batch, world_size=1)
    together = global_batches(samples, batch=batch, world_size=world_size)
    assert alone == together
    assert sorted(itertools.chain(*together)) == list(range(samples))


@given(samples=st.integers(1, 60), per_rank=st.integers(1, 6), world_size=st.sampled_from([1, 2, 3, 4]))
def test_the_weighted_mean_over_ranks_counts_each_sample_once(samples: int, per_rank: int, world_size: int) -> None:
    batch = per_rank * world_size
    ranks = [sampler(samples, batch=batch, rank=rank, world_size=world_size) for rank in range(world_size)]
    for step in range(ranks[0].steps_per_epoch):
        per_sample = [
            own.weight(step) / own.local_size(step) / world_size * ranks[0].global_size(step)
            for own in ranks
            if own.local_size(step)
        ]
        assert per_sample == pytest.approx([1] * len(per_sample))
        if ranks[0].global_size(step) == batch:
            assert all(own.weight(step) == 1.0 for own in ranks)


def test_an_epoch_resumed_at_a_step_has_exactly_the_batches_that_were_left() -> None:
    whole = local_batches(50, batch=8, rank=1, world_size=2, epoch=3)
    assert local_batches(50, batch=8, rank=1, world_size=2, epoch=3, step=4) == whole[4:]
    assert local_batches(50, batch=8, rank=1, world_size=2, epoch=3, step=len(whole)) == []


def test_each_epoch_has_an_order_of_its_own() -> None:
    assert global_batches(50, batch=8, world_size=1, epoch=0) != global_batches(50, batch=8, world_size=1, epoch=1)


def test_a_rank_without_a_sample_in_the_last_batch_repeats_one_at_weight_zero() -> None:
    own = sampler(9, batch=4, rank=1, world_size=2)
    assert own.steps_per_epoch == 3
    assert own.local_size(2) == 0
    assert own.weight(2) == 0
    assert [len(keys) for keys in own] == [2, 2, 1]
    assert len(own) == 3


@pytest.mark.parametrize(
    ("samples", "steps", "dropped"),
    [(5, 1, 1), (7, 1, 3), (8, 2, 0), (3, 1, 0), (1, 1, 0), (4, 1, 0)],
)
def test_a_last_batch_too_small_for_batchnorm_is_left_out_unless_it_is_the_only_one(
    samples: int, steps: int, dropped: int
) -> None:
    own = sampler(samples, batch=4, rank=0, world_size=2, leaves_out=Normalization(ranks=2, devices=1).leaves_out)
    assert (own.steps_per_epoch, own.dropped_samples) == (steps, dropped)


@settings(deadline=None)
@given(
    samples=st.integers(1, 60),
    per_rank=st.integers(1, 3),
    world_size=st.sampled_from([1, 2, 3, 4]),
    accumulate=st.integers(1, 4),
)
def test_a_step_over_several_batches_counts_each_of_its_samples_once(
    samples: int, per_rank: int, world_size: int, accumulate: int
) -> None:
    batch = per_rank * world_size
    ranks = [
        sampler(samples, batch=batch, rank=rank, world_size=world_size, accumulate=accumulate)
        for rank in range(world_size)
    ]
    taken: list[int] = []
    for step in range(ranks[0].steps_per_epoch):
        batches = ranks[0].parts_of(step)
        assert len(batches) == accumulate or step == ranks[0].steps_per_epoch - 1
        taken.extend(batches)
        # What one sample's gradient is multiplied by: the rank's weight, its mean over its share, DDP's over ranks.
        factors = [
            own.weight(number) / own.local_size(number) / world_size
            for number in batches
            for own in ranks
            for _ in range(own.local_size(number))
        ]
        assert factors == pytest.approx([1 / len(factors)] * len(factors))
        assert len(factors) == ranks[0].step_size(step)
    assert taken == list(range(ranks[0].parts_per_epoch))


@pytest.mark.parametrize(("samples", "idle"), [(12, False), (10, False), (9, True), (4, False), (1, True)])
def test_a_sampler_knows_whether_its_last_batch_leaves_a_rank_idle(samples: int, idle: bool) -> None:
    assert sampler(samples, batch=4, rank=0, world_size=2).has_idle_ranks is idle


@pytest.mark.parametrize(
    ("normalization", "ranks", "samples", "parts", "sizes"),
    [
        (Normalization(ranks=1, devices=1), 1, 11, 2, [6, 5]),
        (Normalization(ranks=1, devices=1), 1, 7, 2, [3, 4]),
        (Normalization(ranks=1, devices=1), 1, 7, 6, [2, 2, 3]),
        (Normalization(ranks=1, devices=1), 1, 7, 12, [1] * 7),  # as all parts are
        (Normalization(ranks=4, devices=1), 4, 9, 1, [9]),
        (Normalization(ranks=2, devices=1), 2, 9, 2, [4, 5]),
        (Normalization(ranks=2, devices=1), 2, 5, 3, [5]),
        (Normalization(ranks=1, devices=1), 4, 9, 3, [4, 4, 1]),  # synchronized, and no rank has room for a second
        (Normalization(ranks=1, devices=4), 1, 9, 1, [9]),
        (Normalization(ranks=1, devices=3), 1, 8, 2, [4, 4]),
        (Normalization(ranks=1, devices=3), 1, 11, 2, [11]),
    ],
)
def test_a_last_part_too_small_for_batchnorm_evens_out_with_the_one_before_or_joins_it(
    normalization: Normalization, ranks: int, samples: int, parts: int, sizes: list[int]
) -> None:
    own = sampler(12 + samples, batch=12, parts=parts, rank=0, world_size=ranks, leaves_out=normalization.leaves_out)
    assert [own.global_size(part) for part in range(parts, own.parts_per_epoch)] == sizes
    assert own.dropped_samples == 0
    assert own.has_idle_ranks is (sizes[-1] < ranks)


@given(samples=st.integers(0, 40), world_size=st.integers(1, 5))
def test_validation_counts_each_sample_exactly_once(samples: int, world_size: int) -> None:
    shares = [list(ShardSampler(dataset(samples), rank=rank, world_size=world_size)) for rank in range(world_size)]
    assert sorted(itertools.chain(*shares)) == list(range(samples))
