"""Loader processes: whom the signals that stop a run are for, and how far ahead they work."""

import multiprocessing
import os
import signal
import sys
from typing import Any

import pytest
import torch
from torch.utils.data import BatchSampler, Dataset, SequentialSampler, TensorDataset

from tests.waiting import wait_until
from trainer.data.loading import build_loader


@pytest.mark.skipif(sys.platform != "linux", reason="where loaders are spawned, they do not see what the test sets")
def test_torchrun_asking_a_ranks_group_to_end_spares_a_loader_process_that_is_just_leaving_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rank, leave = os.getpid(), os.setpgid

    def leave_late(process: int, group: int) -> None:
        assert os.getpid() != rank
        os.kill(os.getpid(), signal.SIGTERM)
        leave(process, group)

    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    monkeypatch.setattr("os.setpgid", leave_late)
    samples = TensorDataset(torch.arange(4))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    loader = build_loader(samples, [[0, 1], [2, 3]], num_workers=1, device=torch.device("cpu"))
    batches = iter(loader)
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == mask
    assert [batch[0].tolist() for batch in batches] == [[0, 1], [2, 3]]


class _Counted(Dataset[int]):
    """Counts how many of its samples were loaded."""

    def __init__(self) -> None:
        self.loaded: Any = multiprocessing.Value("i", 0)

    def __len__(self) -> int:
        return 100

    def __getitem__(self, index: int) -> int:
        with self.loaded.get_lock():
            self.loaded.value += 1
        return index


def test_a_loader_process_prepares_as_many_batches_ahead_as_it_is_told() -> None:
    samples = _Counted()
    options: dict[str, Any] = {"num_workers": 1, "prefetch": 5, "device": torch.device("cpu")}
    batches = iter(build_loader(samples, BatchSampler(SequentialSampler(samples), 2, drop_last=False), **options))
    assert next(batches).tolist() == [0, 1]
    wait_until(lambda: samples.loaded.value >= 12, timeout_s=60, what="the batch that was taken and five more")
    assert samples.loaded.value == 12
