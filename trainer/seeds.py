"""Seeds: everything random in a run follows from the config's seed and from where in the run it happens."""

import random

import numpy as np
import torch

# What the seed is for comes first, so that the order of the samples is not the stream that dropout draws from.
_WEIGHTS, _ORDER, _STEP = 1, 2, 3


def seed_weights(seed: int) -> None:
    """Seed the building of the model, on every rank alike: all start from the same weights."""
    _seed_all(seed, _WEIGHTS)


def sample_order(samples: int, *, seed: int, epoch: int) -> list[int]:
    """Return the order of the training samples in an epoch: a permutation of 0 … samples-1."""
    generator = torch.Generator().manual_seed(_mixed(seed, _ORDER, epoch))
    order: list[int] = torch.randperm(samples, generator=generator).tolist()
    return order


def seed_step(seed: int, *, rank: int, epoch: int, step: int) -> None:
    """Seed Python, NumPy and torch for one step of one rank.

    Set anew at every step, no generator carries anything from step to step: a run resumed in the middle of an epoch
    draws what the undisturbed run drew, with no generator state in the checkpoint.
    """
    _seed_all(seed, _STEP, rank, epoch, step)


def _seed_all(*parts: int) -> None:
    value = _mixed(*parts)
    random.seed(value)
    np.random.seed(value % 2**32)
    torch.manual_seed(value)


def _mixed(*parts: int) -> int:
    """Hash the parts into 63 bits; sums or products of small numbers would give neighbours the same stream."""
    return int(np.random.SeedSequence(parts).generate_state(1, np.uint64)[0] >> np.uint64(1))
