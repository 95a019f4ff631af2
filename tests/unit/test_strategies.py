"""The strategies: what a model is wrapped in, and what the user is told."""

from collections.abc import Iterator
from typing import Any, cast

import pytest
import torch
from torch import nn
from torch.distributed import HashStore  # type: ignore[attr-defined]  # exported where torch has distributed
from torch.nn.parallel import DataParallel, DistributedDataParallel

from trainer.config import TrainConfig
from trainer.environment import MASTER_FD_VARIABLE, RankEnvironment
from trainer.errors import ConfigError
from trainer.process_group import ProcessGroup
from trainer.recipes.recipe import Recipe
from trainer.recipes.registry import recipe_type
from trainer.run_dir import RunConfig
from trainer.strategies import InAmpType, accumulating, hint, refuse_unspawnable, replicate

ALONE = RankEnvironment(rank=0, local_rank=0, world_size=1, local_world_size=1)
TWO_GPUS = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="DataParallel needs two CUDA devices")


def config(*devices: str, strategy: str = "ddp", simulated: bool = False, nnodes: int = 1) -> RunConfig:
    train = TrainConfig.model_validate({"model": "resnet18", "data": "digits", "strategy": strategy})
    return RunConfig(train=train, devices=devices, simulated=simulated, nnodes=nnodes)


def alone(device: str = "cpu") -> ProcessGroup:
    return ProcessGroup(ALONE, torch.device(device), None)


@pytest.fixture
def group_of_one() -> Iterator[ProcessGroup]:
    """A real process group, with one rank in it."""
    group = ProcessGroup.join(ALONE, HashStore(), device="cpu", simulated=False, timeout_s=20)
    yield group
    group.leave()


@pytest.mark.parametrize("strategy", ["ddp", "dp", "single"])
def test_a_model_alone_on_one_device_stays_as_it_is(strategy: str) -> None:
    model = nn.Linear(2, 2)
    replica = replicate(model, group=alone(), config=config("cpu", strategy=strategy))
    assert replica is model
    with accumulating(replica):
        pass
    assert hint(config("cpu", strategy=strategy)) is None


def test_among_ranks_gradients_travel_with_the_last_of_accumulated_batches_only(group_of_one: ProcessGroup) -> None:
    replica = replicate(nn.Linear(2, 2), group=group_of_one, config=config("cpu", "cpu"))
    assert isinstance(replica, DistributedDataParallel)
    travels = [replica.require_backward_grad_sync]
    with accumulating(replica):
        travels.append(replica.require_backward_grad_sync)
    assert [*travels, replica.require_backward_grad_sync] == [True, False, True]


def test_simulated_devices_of_one_rank_compute_as_one_and_the_user_is_told() -> None:
    model, run = nn.Linear(2, 2), config("cuda:0", "cuda:1", strategy="dp", simulated=True)
    assert replicate(model, group=alone(), config=run) is model
    told = hint(run)
    assert told is not None
    assert "the 2 simulated ones compute as one" in told
    assert "ddp" in told


def test_whoever_takes_dp_on_several_devices_is_told_that_ddp_is_better() -> None:
    told = hint(config("cuda:0", "cuda:1", strategy="dp"))
    assert told is not None
    assert "ddp" in told
    assert "simulated" not in told
    assert hint(config("cuda:0", "cuda:1")) is None


@TWO_GPUS
def test_one_rank_splits_a_batch_among_its_cuda_devices_as_one_device_would_compute_it() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).to("cuda:0")
    images = torch.randn(6, 8, device="cuda:0")
    replica = replicate(model, group=alone("cuda:0"), config=config("cuda:0", "cuda:1", strategy="dp"))
    assert isinstance(replica, DataParallel)
    gradients = []
    for forward in (model, replica):
        model.zero_grad()
        with accumulating(forward):
            forward(images).square().mean().backward()
        gradients.append([cast("torch.Tensor", parameter.grad).clone() for parameter in model.parameters()])
    for alone_gradient, split_gradient in zip(*gradients, strict=True):
        torch.testing.assert_close(split_gradient, alone_gradient, rtol=1e-4, atol=1e-6)


def test_mixed_precision_is_of_the_type_asked_for_also_where_a_thread_would_take_torchs_default() -> None:
    model = InAmpType(nn.Linear(2, 2), device_type="cpu", dtype=torch.bfloat16)
    images = torch.ones(1, 2)
    with torch.autocast("cpu", dtype=torch.float16):
        assert model(images).dtype is torch.bfloat16
    assert model(images).dtype is torch.float32


class _NeedsTorchrun:
    """A recipe that our own launcher cannot start."""

    name = "needs-torchrun"
    spawnable = False


def started(*, ranks: int, by_us: bool) -> RankEnvironment:
    own = {MASTER_FD_VARIABLE: ""} if by_us else {}
    return RankEnvironment.read({"RANK": "0", "WORLD_SIZE": str(ranks), "LOCAL_RANK": "0"} | own)


def refuse(recipe: Any, *, ranks: int, by_us: bool, nnodes: int = 1) -> None:
    devices = tuple(f"cuda:{index}" for index in range(ranks // nnodes))
    refuse_unspawnable(recipe, config(*devices, nnodes=nnodes), started(ranks=ranks, by_us=by_us))


def test_a_recipe_that_cannot_be_spawned_says_so_with_the_call_and_the_command_to_use_instead() -> None:
    with pytest.raises(ConfigError) as refused:
        refuse(_NeedsTorchrun(), ranks=2, by_us=True)
    message = str(refused.value)
    assert message.startswith("recipe: 'needs-torchrun' ")
    assert "train(device=…)" in message
    assert "torchrun --nproc-per-node 2 -m trainer train.yaml" in message
    with pytest.raises(ConfigError, match=r"torchrun --nnodes 2 .* --nproc-per-node 2 -m trainer"):
        refuse(_NeedsTorchrun(), ranks=4, by_us=True, nnodes=2)


def test_a_recipe_that_cannot_be_spawned_trains_on_one_device_and_under_torchrun() -> None:
    refuse(_NeedsTorchrun(), ranks=1, by_us=True)
    refuse(_NeedsTorchrun(), ranks=2, by_us=False)


def test_the_recipes_there_are_can_be_spawned() -> None:
    recipe: Recipe = recipe_type("classification")(TrainConfig(model="resnet18", data="digits"))
    assert recipe.spawnable
    refuse(recipe, ranks=2, by_us=True)
