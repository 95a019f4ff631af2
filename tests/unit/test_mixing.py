"""MixUp and CutMix: what is drawn for a sample, and what becomes of its pixels."""

import random

import numpy as np
import pytest
import torch

from trainer.data.mixing import Mixing

SIZE = 16


def draws(mixing: Mixing, count: int) -> torch.Tensor:
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)
    return torch.stack([mixing.draw() for _ in range(count)])


def images(seed: int, count: int) -> torch.Tensor:
    return torch.randn(count, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(seed))


def test_mixup_blends_all_pixels_by_the_weight_of_the_label() -> None:
    mixing = Mixing(SIZE, mixup=1.0, cutmix=None)
    ours, partners, mixes = images(0, 8), images(1, 8), draws(mixing, 8)
    own = mixes[:, 0, None, None, None]
    assert torch.equal(mixing.blend(ours, partners, mixes), ours * own + partners * (1 - own))
    assert len(set(own.flatten().tolist())) == 8


def test_cutmix_takes_a_box_whole_from_the_partner_and_the_label_s_weight_is_the_area_that_is_left() -> None:
    mixing = Mixing(SIZE, mixup=None, cutmix=1.0)
    ours, partners, mixes = images(0, 50), images(1, 50), draws(mixing, 50)
    mixed = mixing.blend(ours, partners, mixes)
    is_partner = (mixed == partners).all(dim=1)
    assert torch.equal(mixed, torch.where(is_partner[:, None], partners, ours))
    assert torch.equal(is_partner.float().mean(dim=(1, 2)), 1 - mixes[:, 0])
    for mask, (left, top, right, bottom) in zip(is_partner, mixes[:, 2:].int().tolist(), strict=True):
        assert mask[top:bottom, left:right].all()
        assert mask.sum() == (bottom - top) * (right - left)


@pytest.mark.parametrize("alpha", [0.01, 0.2, 1.0, 50.0])
def test_weights_follow_the_beta_distribution(alpha: float) -> None:
    own = draws(Mixing(SIZE, mixup=alpha, cutmix=None), 4000)[:, 0]
    assert 0 <= own.min() <= own.max() <= 1
    assert own.mean().item() == pytest.approx(0.5, abs=0.03)
    assert own.var().item() == pytest.approx(1 / (4 * (2 * alpha + 1)), rel=0.1)  # alpha² / ((2 alpha)² (2 alpha + 1))


def test_with_both_each_sample_gets_one_of_them_evenly() -> None:
    mixes = draws(Mixing(SIZE, mixup=1.0, cutmix=1.0), 1000)
    is_cutmix = (mixes[:, 1] == 1).float()
    assert is_cutmix.mean().item() == pytest.approx(0.5, abs=0.05)
    assert mixes[is_cutmix == 0, 2:].count_nonzero() == 0
