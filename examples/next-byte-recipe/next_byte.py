"""The recipe `next-byte`: guess each next byte of a text."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from pydantic import Field
from torch import nn
from torch.nn import functional
from torch.utils.data import Dataset

from trainer.config import TrainConfig
from trainer.errors import ConfigError, DataError
from trainer.process_group import ProcessGroup
from trainer.recipes.recipe import Evaluation, Quantity, RecipeOptions, TaskData, options_of


class NextByteOptions(RecipeOptions):
    """What `options` may hold."""

    context: int = Field(default=32, ge=1)
    """Bytes that a sample has; each but the first is guessed from those before it."""
    width: int = Field(default=64, ge=1)
    """Size of the network's hidden state."""


class Windows(Dataset[torch.Tensor]):
    """Windows of a text, one for each `context` bytes: [context + 1] of dtype uint8."""

    def __init__(self, text: bytes, context: int, *, is_shifted: bool) -> None:
        self.text = torch.frombuffer(bytearray(text), dtype=torch.uint8)
        self.context, self.is_shifted = context, is_shifted

    def __len__(self) -> int:
        return (len(self.text) - 1) // self.context

    def __getitem__(self, index: int) -> torch.Tensor:
        begin = index * self.context
        if self.is_shifted:  # drawn in the item, whose generators are seeded for it: alike on any device list
            begin = max(0, begin - int(torch.randint(self.context, ())))
        return self.text[begin : begin + self.context + 1]


class Network(nn.Module):
    """Logits of the next byte at each place of a window: [batch, context, 256]."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(256, width)
        self.recurrent = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, 256)

    def forward(self, windows: torch.Tensor) -> torch.Tensor:
        hidden, _ = self.recurrent(self.embedding(windows.long()))
        logits: torch.Tensor = self.head(hidden)
        return logits


class NextByte:
    """The next byte of a text; cross-entropy over the 256 values of a byte."""

    name = "next-byte"
    description = "Guess the next byte of a text: a folder with train.txt and val.txt"
    best_metric = "val/accuracy"
    tie_metric = "val/loss"
    spawnable = True
    sync_bn_default = False  # there is no BatchNorm in this network
    options_model = NextByteOptions

    def __init__(self, config: TrainConfig) -> None:
        self.config, self.options = config, options_of(config, NextByteOptions)

    @classmethod
    def models(cls) -> Sequence[str]:
        return ("gru",)

    def build_data(self, group: ProcessGroup) -> TaskData:
        train, val = (self._read(Path(self.config.data, name)) for name in ("train.txt", "val.txt"))
        context = self.options.context
        return TaskData(
            train=Windows(train, context, is_shifted=True),
            val=Windows(val, context, is_shifted=False),
            samples=f"{len(train)} and {len(val)} bytes, sha256 {sha256(train + val).hexdigest()[:12]}",
        )

    def _read(self, path: Path) -> bytes:
        try:
            text = path.read_bytes()
        except OSError as error:
            raise DataError(f"data: {path} cannot be read: {error.strerror}") from error
        if len(text) <= self.options.context:
            raise DataError(f"data: {path} has {len(text)} bytes, and a sample takes {self.options.context + 1}")
        return text

    def build_model(self, data: TaskData) -> nn.Module:
        if self.config.model not in self.models():
            raise ConfigError(f"model: {self.config.model!r} is none of {', '.join(self.models())}")
        return Network(self.options.width)

    def check_model(self, model: nn.Module, data: TaskData) -> None:
        with torch.no_grad():
            logits = model(data.val[0][None, :-1])
        if tuple(logits.shape) != (1, self.options.context, 256):
            raise ConfigError(f"model: returns {tuple(logits.shape)} for one window; it takes [1, context, 256]")

    def loss(self, model: nn.Module, batch: Any) -> torch.Tensor:
        return self._losses(model(batch[:, :-1]), batch).mean()

    def _losses(self, logits: torch.Tensor, windows: torch.Tensor) -> torch.Tensor:
        """Cross-entropy of each guess: [batch, context]."""
        return functional.cross_entropy(logits.mT, windows[:, 1:].long(), reduction="none")

    def quantities(self, data: TaskData) -> tuple[Quantity, ...]:
        return Quantity("loss"), Quantity("correct")

    def measure(self, model: nn.Module, batch: Any) -> dict[str, torch.Tensor]:
        logits = model(batch[:, :-1])
        is_right = logits.argmax(dim=2) == batch[:, 1:]
        return {"loss": self._losses(logits, batch).mean(dim=1), "correct": is_right.float().mean(dim=1)}

    def summarize(self, totals: Mapping[str, torch.Tensor], count: int, data: TaskData) -> Evaluation:
        return Evaluation({"val/loss": totals["loss"].item() / count, "val/accuracy": totals["correct"].item() / count})
