"""Compiling: what a host or a strategy that cannot is told."""

import pytest
import torch
from torch import nn

from trainer.compiling import compile_in_place, refuse_uncompilable
from trainer.config import TrainConfig
from trainer.errors import ConfigError


def test_a_host_without_a_compiler_is_told_so_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._inductor import config  # slow to import

    monkeypatch.setattr(config.cpp, "cxx", (None, "/none/g++"))
    with pytest.raises(
        ConfigError, match=r"compile: torch.compile does not work on this host's cpu .*/none/g\+\+.* CXX"
    ):
        compile_in_place(nn.Linear(2, 2), device=torch.device("cpu"))


def test_copies_of_a_model_are_not_compiled() -> None:
    dp = TrainConfig(model="resnet18", data="digits", compile=True, strategy="dp")
    with pytest.raises(ConfigError, match=r"compile: strategy dp .*use ddp"):
        refuse_uncompilable(dp, devices=2)
    refuse_uncompilable(dp, devices=1)
