"""A model that takes its time, or for ever, where a test says so."""

import ctypes
import os
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
    ) -> None:
        """`stuck_at`: the training batch, counted from 0, that never comes to its end."""
        super().__init__()
        self.linear = nn.Linear(3 * image_size * image_size, 2)
        self._first_step_s, self._evaluated_batch_s = first_step_s, evaluated_batch_s
        self._stuck_at, self._batches = stuck_at, 0

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        if os.environ["RANK"] == "1":
            if not self.training:
                time.sleep(self._evaluated_batch_s)
            elif self._batches == 0:
                time.sleep(self._first_step_s)
            if self.training and self._batches == self._stuck_at:
                wait_for_ever()
            self._batches += self.training
        logits: torch.Tensor = self.linear(images.flatten(1))
        return logits


def wait_for_ever() -> None:
    """Never return, and let no other Python code of this process run: a call of C that holds the interpreter."""
    while True:
        ctypes.PyDLL(None).sleep(3600)  # which a signal interrupts
