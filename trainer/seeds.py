"""Seeds: everything random in a run follows from the config's seed and from where in the run it happens."""

import random

import numpy as np
import torch

# What the seed is for comes first, so that the order of the samples is not the stream that dropout draws from.
_WEIGHTS, _ORDER, _BATCH, _SAMPLE = 1, 2, 3, 4


def seed_weights(seed: int) -> None:
    """Seed the building of the model, on every rank alike: all start from the same weights."""
    _seed_all(seed, _WEIGHTS)


def sample_order(samples: int, *, seed: int, epoch: int) -> list[int]:
    """Return the order of the training samples in an epoch: a permutation of 0 … samples-1."""
    generator = torch.Generator().manual_seed(_mixed(seed, _ORDER, epoch))
    order: list[int] = torch.randperm(samples, generator=generator).tolist()
    return order


def seed_batch(seed: int, *, rank: int, epoch: int, batch: int) -> None:
    """Seed Python, NumPy and torch for what one rank does with one batch of an epoch.

    Set anew at every batch, no generator carries anything from step to step: a run resumed in the middle of an epoch
    draws what the undisturbed run drew, with no generator state in the checkpoint.
    """
    _seed_all(seed, _BATCH, rank, epoch, batch)


def seed_sample(seed: int, *, epoch: int, index: int) -> None:
    """Seed Python, NumPy and torch's CPU for the loading of one sample, whichever rank and loader process loads it.

    So a sample is augmented alike on any device list, and alike in a resumed run.
    """
    value = _mixed(seed, _SAMPLE, epoch, index)
    _seed_python_and_numpy(value)
    # torch.manual_seed also looks after every kind of accelerator, which takes a hundred times as long.
    torch.default_generator.manual_seed(value)


def _seed_all(*parts: int) -> None:
    value = _mixed(*parts)
    _seed_python_and_numpy(value)
    torch.manual_seed(value)  # also the device's generator


def _seed_python_and_numpy(value: int) -> None:
    random.seed(value)
    np.random.seed(value % 2**32)


def _mixed(*parts: int) -> int:
    """Hash the parts into 63 bits; sums or products of small numbers would give neighbours the same stream."""
    return int(np.random.SeedSequence(parts).generate_state(1, np.uint64)[0] >> np.uint64(1))
