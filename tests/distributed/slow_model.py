"""A model that takes its time, or for ever, where a test says so."""

import ctypes
import os
import threading
import time

import torch
from torch import nn


class SlowModel(nn.Module):
    """A linear classifier that is slow on rank 1 alone, as the last of several ranks is with the largest images."""

    def __init__(
        self,
        *,
        image_size: int,
        first_step_s: float = 0,
        evaluated_batch_s: float = 0,
        stuck_at: int | None = None,
        stuck_in_c: bool = False,
    ) -> None:
        """`stuck_at`: the training batch, counted from 0, that never comes to its end: it waits for a lock, or with
        `stuck_in_c` in a call of C that lets no other Python code run."""
        super().__init__()
        self.linear = nn.Linear(3 * image_size * image_size, 2)
        self._first_step_s, self._evaluated_batch_s = first_step_s, evaluated_batch_s
        self._stuck_at, self._stuck_in_c = stuck_at, stuck_in_c
        self._batches = 0

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        if os.environ["RANK"] == "1":
            if not self.training:
                time.sleep(self._evaluated_batch_s)
            elif self._batches == 0:
                time.sleep(self._first_step_s)
            if self.training and self._batches == self._stuck_at:
                wait_for_ever(in_c=self._stuck_in_c)
            self._batches += self.training
        logits: torch.Tensor = self.linear(images.flatten(1))
        return logits


def wait_for_ever(*, in_c: bool) -> None:
    """Never return."""
    while in_c:
        ctypes.PyDLL(None).sleep(3600)  # which holds Python's lock
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()
