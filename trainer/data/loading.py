"""Loaders: batches of a data set for one rank, with loader processes that die with it."""

import os
import signal
import sys
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset, default_collate
from torch.utils.data.dataloader import _BaseDataLoaderIter

from trainer.parent_death import die_with_parent

_STOP_SIGNALS = {signal.SIGINT, signal.SIGTERM}


def build_loader(
    dataset: Dataset[Any],
    batches: Iterable[list[Any]],
    *,
    num_workers: int,
    device: torch.device,
    prefetch: int = 2,
    collate: Callable[[list[Any]], Any] = default_collate,
) -> DataLoader[Any]:
    """Return a loader of the samples that each of `batches` names (a batch sampler), each process `prefetch` ahead.

    Its processes live as long as the loader, so an epoch costs no start; the sampler runs in the rank itself and may
    therefore change from epoch to epoch.
    """
    return _Loader(
        dataset,
        batch_sampler=batches,
        num_workers=num_workers,
        collate_fn=collate,
        pin_memory=device.type == "cuda",
        persistent_workers=num_workers > 0,
        prefetch_factor=prefetch if num_workers > 0 else None,
        worker_init_fn=partial(_begin, os.getpid()),
        # Loader processes never touch CUDA, so they may be forked, which starts them in milliseconds and shares the
        # data set's listing; the forkserver, later Pythons' default, would be the parent in the rank's place.
        multiprocessing_context=("fork" if sys.platform == "linux" else "spawn") if num_workers > 0 else None,
        # The loader draws a seed from it; from the default generator it would take what training draws next.
        generator=torch.Generator().manual_seed(0),
    )


class _Loader(DataLoader[Any]):
    """Starts its processes with the signals that stop a run held back until they know whom those are for."""

    def __iter__(self) -> _BaseDataLoaderIter:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)  # which a process inherits
        try:
            return super().__iter__()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def on_device(batch: Any, device: torch.device) -> Any:
    """Move the tensors of a batch (a tensor, or tuples, lists and dicts of them) to the device."""
    if isinstance(batch, torch.Tensor):
        return batch.to(device, non_blocking=True)
    if isinstance(batch, (tuple, list)):
        return type(batch)(on_device(part, device) for part in batch)
    if isinstance(batch, dict):
        return {name: on_device(part, device) for name, part in batch.items()}
    return batch


def _begin(parent_pid: int, _worker: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the launcher decides what a Ctrl-C means
    if "TORCHELASTIC_RUN_ID" in os.environ:
        os.setpgid(0, 0)  # torchrun asks a rank's whole group to end; the rank needs its loaders to stop in step
        while signal.SIGTERM in signal.sigpending():  # it asked while this process was in the group
            signal.sigwait({signal.SIGTERM})
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOP_SIGNALS)
    die_with_parent(parent_pid)
