"""The process group: words that ranks exchange over the store."""

from datetime import timedelta

import pytest
import torch
from torch._C._distributed_c10d import HashStore, TCPStore

from trainer.environment import RankEnvironment
from trainer.process_group import ProcessGroup
from trainer.roll_call import PeersMissingError


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
