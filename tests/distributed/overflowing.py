"""A model whose gradients overflow once, for tests of what becomes of such a step."""

import hashlib
import math
import os
from pathlib import Path

import torch
from torch import nn


class OverflowingModel(nn.Module):
    """A linear classifier. Each rank appends a line for each training batch: a digest of the weights it finds."""

    def __init__(self, folder: Path, *, image_size: int, overflows_at: int | None = None) -> None:
        """The gradient of training batch `overflows_at`, counted from 0, is not finite, on rank 1 alone."""
        super().__init__()
        self.linear = nn.Linear(3 * image_size * image_size, 2)
        self._folder, self._overflows_at, self._batches = folder, overflows_at, 0

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.linear(images.flatten(1))
        if self.training:
            rank = int(os.environ["RANK"])
            if rank == 1 and self._batches == self._overflows_at:
                logits.register_hook(lambda gradient: gradient * math.inf)  # type: ignore[no-untyped-call]  # torch's own
            self._batches += 1
            with (self._folder / f"rank-{rank}").open("a") as file:
                file.write(hashlib.sha256(self.linear.weight.numpy(force=True).tobytes()).hexdigest() + "\n")
        return logits
