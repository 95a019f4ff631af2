"""Screening: all ranks together look for the samples of a run that cannot be read, before its first step."""

import json
from collections.abc import Callable, Sequence

import torch
from torch.utils.data import BatchSampler, Dataset

from trainer.data.loading import build_loader
from trainer.errors import DataError
from trainer.process_group import ProcessGroup
from trainer.sampling import ShardSampler

_BATCH = 16
"""Samples between two signs of life."""
_NAMED = 10
"""How many broken files a message names."""


def screen(
    count: int, look: Callable[[int], object], *, matter: str, num_workers: int, group: ProcessGroup
) -> dict[int, str]:
    """Look at `count` samples, shared out among all ranks and their loader processes; return why some are broken.

    `look` is called with the index of a sample and raises DataError for a broken one. Every rank has to call this, with
    a `matter` of its own for each screening of a run, and gets the same, by index.
    """
    samples = _Looks(count, look)
    loader = build_loader(
        samples,
        BatchSampler(ShardSampler(samples, rank=group.rank, world_size=group.world_size), _BATCH, drop_last=False),
        num_workers=num_workers,
        device=torch.device("cpu"),  # nothing of it goes to another device
        collate=_as_they_come,
    )
    found: dict[int, str] = {}
    for batch in loader:
        found |= {index: reason for index, reason in batch if reason}
        group.alive()
    of_all: dict[int, str] = {}
    for of_rank in group.exchange(f"screening/{matter}", json.dumps(list(found.items()))):
        of_all |= dict(json.loads(of_rank))
    return dict(sorted(of_all.items()))


def named(reasons: Sequence[str]) -> str:
    """Join what is wrong with each of many files, as far as people will read."""
    more = f"; and {len(reasons) - _NAMED} more" if len(reasons) > _NAMED else ""
    return "; ".join(reasons[:_NAMED]) + more


class _Looks(Dataset[tuple[int, str]]):
    """What is wrong with each sample."""

    def __init__(self, count: int, look: Callable[[int], object]) -> None:
        self._count, self._look = count, look

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> tuple[int, str]:
        try:
            self._look(index)
        except DataError as error:
            return index, str(error)
        return index, ""


def _as_they_come(items: list[tuple[int, str]]) -> list[tuple[int, str]]:
    return items
