"""What BatchNorm asks of batches, however they are cut among ranks and devices."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import TensorDataset

from trainer.errors import ConfigError
from trainer.normalization import Normalization
from trainer.sampling import GlobalBatchSampler


@given(samples=st.integers(1, 200), ranks=st.integers(1, 5))
def test_the_smallest_part_is_the_smallest_share_of_a_rank(samples: int, ranks: int) -> None:
    shares = [len(range(rank, samples, ranks)) for rank in range(ranks)]
    assert Normalization(ranks=ranks, devices=1).smallest_part(samples) == min(shares)


@given(samples=st.integers(1, 200), devices=st.integers(1, 5))
def test_the_smallest_part_is_the_smallest_chunk_that_torch_cuts_for_a_device(samples: int, devices: int) -> None:
    chunks = torch.arange(samples).chunk(devices)
    assert Normalization(ranks=1, devices=devices).smallest_part(samples) == min(map(len, chunks))


@pytest.mark.parametrize(
    ("cut", "samples", "warned"),
    [
        (Normalization(ranks=1, devices=1), 17, "the last 1 of each epoch's samples is left out"),
        (Normalization(ranks=1, devices=1), 18, None),
        (Normalization(ranks=4, devices=1), 19, "in 4 parts, they are too few"),
        (Normalization(ranks=1, devices=4), 21, "in 4 parts, they are too few"),  # 2, 2, 1
    ],
)
def test_a_last_batch_with_a_part_of_one_is_left_out_with_a_warning(
    cut: Normalization, samples: int, warned: str | None
) -> None:
    warnings = [text for text in cut.warnings(sampler(samples, cut)) if "left out" in text]
    assert len(warnings) == (warned is not None)
    assert warned is None or warned in warnings[0]


def test_an_only_batch_that_is_too_small_is_refused_with_the_ways_out() -> None:
    for cut, samples in ((Normalization(ranks=1, devices=1), 1), (Normalization(ranks=4, devices=1), 7)):
        with pytest.raises(ConfigError, match=f"data: {samples} training image.*too few for BatchNorm.*more images"):
            cut.refuse_too_few(sampler(samples, cut))
    Normalization(ranks=4, devices=1).refuse_too_few(sampler(8, Normalization(ranks=4, devices=1)))


def test_small_shares_that_are_normalised_by_themselves_are_worth_a_warning() -> None:
    cut = Normalization(ranks=2, devices=1)
    assert "sync_bn is off" in cut.warnings(sampler(16, cut))[0]
    assert Normalization(ranks=1, devices=1).warnings(sampler(16, cut)) == []


def sampler(samples: int, cut: Normalization) -> GlobalBatchSampler:
    dataset = TensorDataset(torch.arange(samples))
    return GlobalBatchSampler(dataset, batch=8, rank=0, world_size=1, seed=0, leaves_out=cut.leaves_out)
