"""Loader processes: whom the signals that stop a run are for."""

import os
import signal
import sys

import pytest
import torch
from torch.utils.data import SequentialSampler, TensorDataset

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
    loader = build_loader(samples, SequentialSampler(samples), batch=2, num_workers=1, device=torch.device("cpu"))
    batches = iter(loader)
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == mask
    assert [batch[0].tolist() for batch in batches] == [[0, 1], [2, 3]]
