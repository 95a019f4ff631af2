"""Screening: all ranks together look at the samples of a run before its first step, each at a share of them."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

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
    share = _share(_Looks(count, look, keeps=False), num_workers=num_workers, group=group)
    broken = [(index, reason) for index, _, reason in share if reason]
    return dict(_of_all_ranks(broken, matter, group))


def survey(count: int, look: Callable[[int], Any], *, matter: str, num_workers: int, group: ProcessGroup) -> list[Any]:
    """Look at samples as `screen` does; return what `look` says of each of them, which has to be JSON.

    Raises the DataError of the first sample for which `look` does, on every rank.
    """
    share = list(_share(_Looks(count, look, keeps=True), num_workers=num_workers, group=group))
    found = _of_all_ranks(share, matter, group)
    for _, _, reason in found:
        if reason:
            raise DataError(reason)
    return [said for _, said, _ in found]


def named(reasons: Sequence[str]) -> str:
    """Join what is wrong with each of many files, as far as people will read."""
    more = f"; and {len(reasons) - _NAMED} more" if len(reasons) > _NAMED else ""
    return "; ".join(reasons[:_NAMED]) + more


def _share(samples: "_Looks", *, num_workers: int, group: ProcessGroup) -> Iterator[tuple[int, Any, str]]:
    """Look at this rank's share."""
    loader = build_loader(
        samples,
        BatchSampler(ShardSampler(samples, rank=group.rank, world_size=group.world_size), _BATCH, drop_last=False),
        num_workers=num_workers,
        device=torch.device("cpu"),  # nothing of it goes to another device
        collate=_as_they_come,
    )
    for batch in loader:
        yield from batch
        group.alive()


def _of_all_ranks(of_this: list[Any], matter: str, group: ProcessGroup) -> list[Any]:
    """Return the lists of all ranks as one, sorted by the index that each entry begins with."""
    lists = map(json.loads, group.exchange(f"screening/{matter}", json.dumps(of_this)))
    return sorted((entry for of_rank in lists for entry in of_rank), key=lambda entry: int(entry[0]))


class _Looks(Dataset[tuple[int, Any, str]]):
    """What is said of each sample, and what is wrong with it."""

    def __init__(self, count: int, look: Callable[[int], Any], *, keeps: bool) -> None:
        """`keeps`: whether anybody wants to know what `look` says, which else need not leave its process."""
        self._count, self._look, self._keeps = count, look, keeps

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> tuple[int, Any, str]:
        try:
            said = self._look(index)
        except DataError as error:
            return index, None, str(error)
        return index, said if self._keeps else None, ""


def _as_they_come(items: list[tuple[int, Any, str]]) -> list[tuple[int, Any, str]]:
    return items
