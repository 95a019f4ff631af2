"""The process group: words that ranks exchange over the store, and the collectives behind it."""

from datetime import timedelta

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch._C._distributed_c10d import HashStore, TCPStore
from torch.nn.parallel import DistributedDataParallel

from trainer.config import TrainConfig
from trainer.environment import RankEnvironment
from trainer.errors import DeviceError
from trainer.process_group import ProcessGroup, local_device
from trainer.roll_call import PeersMissingError
from trainer.run_dir import RunConfig
from trainer.strategies import replicate


def ranks(store: HashStore) -> list[ProcessGroup]:
    """Two nodes of two ranks each."""
    environments = [
        RankEnvironment(rank=rank, local_rank=rank % 2, world_size=4, local_world_size=2, node_rank=rank // 2)
        for rank in range(4)
    ]
    return [ProcessGroup(environment, torch.device("cpu"), store) for environment in environments]


def test_each_node_hears_its_own_first_rank() -> None:
    heard = [group.share_on_node("file", f"of rank {group.rank}") for group in ranks(HashStore())]
    assert heard == ["of rank 0", "of rank 0", "of rank 2", "of rank 2"]


def test_a_rank_that_says_nothing_is_named() -> None:
    store = HashStore()
    store.set_timeout(timedelta(seconds=0.1))
    group = ranks(store)[0]
    store.set("found/rank/1", "0")
    with pytest.raises(PeersMissingError, match="no word of rank 2"):
        group.exchange("found", "mine")


def test_more_than_the_store_takes_at_once_is_exchanged_in_parts() -> None:
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False, timeout=timedelta(seconds=20))
    environment = RankEnvironment(rank=0, local_rank=0, world_size=1, local_world_size=1)
    value = "äb" * (3 * 2**20)  # 9 MiB
    assert ProcessGroup(environment, torch.device("cpu"), store).exchange("found", value) == [value]


def test_a_rank_alone_hears_itself() -> None:
    group = ProcessGroup.alone(torch.device("cpu"))
    assert group.share_on_node("file", "mine") == "mine"
    assert group.exchange("found", "mine") == ["mine"]
    assert group.is_one_node


@pytest.mark.parametrize(
    ("count", "has"),
    [(0, "it has no CUDA device that torch can use"), (1, "it has cuda:0"), (4, "it has cuda:0 to cuda:3")],
)
def test_a_device_that_is_missing_is_named_beside_those_that_are_there(
    count: int, has: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    with pytest.raises(DeviceError) as refused:
        local_device("cuda:4", simulated=False)
    assert str(refused.value) == f"device: 'cuda:4' is not on this host; {has}"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU: joins a group by NCCL")
def test_on_a_gpu_ranks_join_by_nccl_and_leave_nothing_behind() -> None:
    environment = RankEnvironment(rank=0, local_rank=0, world_size=1, local_world_size=1)
    group = ProcessGroup.join(environment, HashStore(), device="cuda:0", simulated=False, timeout_s=60)
    try:
        assert dist.get_backend() == "nccl"
        assert group.sum(torch.tensor([1.5], dtype=torch.float64, device=group.device)).item() == 1.5
        model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)).to(group.device)
        group.align_buffers(model)  # a counter of whole numbers is among them
        train = TrainConfig(model="resnet18", data="digits")
        replica = replicate(model, group=group, config=RunConfig(train=train, devices=("cuda:0",)))
        assert isinstance(replica, DistributedDataParallel)
        replica(torch.randn(4, 2, device=group.device)).square().sum().backward()
        assert all(parameter.grad is not None for parameter in model.parameters())
        group.wait_for_all()
    finally:
        group.leave()
    assert not dist.is_initialized()
