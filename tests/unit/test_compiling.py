"""Compiling: what a host or a strategy that cannot is told."""

import copy
from collections.abc import Iterator

import pytest
import torch
from torch import nn
from torch.distributed import HashStore  # type: ignore[attr-defined]  # exported where torch has distributed

from trainer.compiling import compile_in_place, refuse_uncompilable
from trainer.config import TrainConfig
from trainer.environment import RankEnvironment
from trainer.errors import ConfigError
from trainer.process_group import ProcessGroup
from trainer.sync_batchnorm import synchronize_batchnorm

CPU = torch.device("cpu")


@pytest.fixture
def group_of_one() -> Iterator[ProcessGroup]:
    """A real process group, with one rank in it."""
    alone = RankEnvironment(rank=0, local_rank=0, world_size=1, local_world_size=1)
    group = ProcessGroup.join(alone, HashStore(), device="cpu", simulated=False, timeout_s=20)
    yield group
    group.leave()


@pytest.mark.usefixtures("group_of_one")
def test_a_compiled_model_normalises_over_the_ranks_as_it_does_without() -> None:
    torch.manual_seed(3)
    layers = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU())
    model = synchronize_batchnorm(layers, device=CPU, has_idle_ranks=False)
    compiled, images = copy.deepcopy(model), torch.rand(4, 3, 6, 6)
    compile_in_place(compiled, device=CPU)
    for each in (model, compiled):
        each(images).square().sum().backward()
    assert compiled.state_dict().keys() == model.state_dict().keys()
    for name, value in compiled.state_dict().items():
        torch.testing.assert_close(value, model.state_dict()[name])
    for one, other in zip(compiled.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad)


def test_a_host_without_a_compiler_is_told_so_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._inductor import config  # slow to import

    torch.compiler.reset()  # what another test has compiled is no sign of a compiler
    monkeypatch.setattr(config.cpp, "cxx", (None, "/none/g++"))
    with pytest.raises(
        ConfigError, match=r"compile: torch.compile does not work on this host's cpu .*/none/g\+\+.* CXX"
    ):
        compile_in_place(nn.Linear(2, 2), device=CPU)


def test_copies_of_a_model_are_not_compiled() -> None:
    dp = TrainConfig(model="resnet18", data="digits", compile=True, strategy="dp")
    with pytest.raises(ConfigError, match=r"compile: strategy dp .*use ddp"):
        refuse_uncompilable(dp, devices=2)
    refuse_uncompilable(dp, devices=1)
