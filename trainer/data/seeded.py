"""Seeded samples: a training set in which what is random about a sample depends on seed, epoch and sample alone."""

from collections.abc import Sized
from typing import Any

from torch.utils.data import Dataset

from trainer.sampling import Key
from trainer.seeds import seed_sample


class SeededSamples(Dataset[Any]):
    """A data set whose every item is loaded with the generators seeded for it.

    Any augmentation is then the same on every device list, whether it draws from torch, NumPy or Python: neither the
    rank nor the loader process that happens to load a sample has a part in it.
    """

    def __init__(self, dataset: Dataset[Any], *, seed: int) -> None:
        assert isinstance(dataset, Sized)
        self._dataset, self._length, self._seed = dataset, len(dataset), seed

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, key: Key) -> Any:
        epoch, index = key
        seed_sample(self._seed, epoch=epoch, index=index)
        return self._dataset[index]
