"""The fields of a train.yaml that say where to train: nodes, strategies, and what torchrun has started instead."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from trainer.environment import RankEnvironment
from trainer.errors import ConfigError
from trainer.run_dir import RunConfig
from trainer.train_file import TrainFile


def train_file(**fields: Any) -> TrainFile:
    return TrainFile.of({"model": "resnet18", "data": "digits", "batch": 8, "device": "cpu"} | fields)


def run_config(**fields: Any) -> RunConfig:
    return train_file(**fields).run_config()


def refusal(**fields: Any) -> str:
    with pytest.raises(ConfigError) as refused:
        run_config(**fields)
    return str(refused.value)


def test_a_run_on_one_node_needs_no_word_of_nodes() -> None:
    config = run_config(nproc_per_node=2)
    assert (config.nnodes, config.node_rank, config.world_size, config.master_port) == (1, 0, 2, 0)


def test_a_node_has_its_own_ranks_and_knows_of_all() -> None:
    where = {"nnodes": 2, "node_rank": 1, "master_addr": "alpha", "master_port": 29400}
    config = run_config(nproc_per_node=4, **where)
    assert (config.local_world_size, config.world_size, config.node_rank) == (4, 8, 1)
    assert (config.master_addr, config.master_port) == ("alpha", 29400)


def test_node_0_needs_no_address_of_its_own_and_is_not_taken_for_loopback() -> None:
    assert run_config(nnodes=2, master_port=29400).master_addr not in ("", "127.0.0.1", "localhost")


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"nnodes": 2}, "master_port"),
        ({"nnodes": 2, "node_rank": 1, "master_port": 29400}, "master_addr"),
        ({"nnodes": 2, "node_rank": 2, "master_port": 29400, "master_addr": "alpha"}, "node_rank"),
        ({"node_rank": 1}, "nnodes"),
        ({"node_rank": 1, "master_addr": "alpha", "nnodes": 1}, "nnodes"),
        ({"nnodes": 0}, "nnodes"),
        ({"nnodes": "two"}, "nnodes"),
        ({"nnodes": True}, "nnodes"),
        ({"node_rank": -1}, "node_rank"),
        ({"master_port": 65536}, "master_port"),
        ({"master_addr": " "}, "master_addr"),
        ({"master_addr": 7}, "master_addr"),
        ({"nproc_per_node": 0}, "nproc_per_node"),
    ],
)
def test_nodes_that_cannot_meet_are_refused_by_the_field(fields: dict[str, Any], field: str) -> None:
    assert refusal(**fields).startswith(f"{field}: ")


def test_the_launcher_is_told_how_long_a_rank_may_be_without_progress() -> None:
    assert run_config().hang_limit_s is None
    assert run_config(hang_limit_s=90).hang_limit_s == 90


@pytest.mark.parametrize("value", [0, -1, True, "long", float("nan"), float("inf")])
def test_a_limit_that_is_no_time_is_refused(value: object) -> None:
    assert refusal(hang_limit_s=value).startswith("hang_limit_s: ")


def test_on_one_node_the_paths_of_a_run_are_whole_so_that_it_continues_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/me")
    train = run_config(data="./images", resume="last.pt").train
    assert (train.data, train.resume) == (str(tmp_path / "images"), str(tmp_path / "last.pt"))
    train = train_file(data="~/images", resume="~/last.pt").run_config_under_torchrun(torchrun(local=1)).train
    assert (train.data, train.resume) == ("/home/me/images", "/home/me/last.pt")
    assert run_config().train == train_file().train  # a known name stays a name


def test_several_nodes_which_compare_their_paths_keep_them_as_written() -> None:
    assert run_config(data="./images", nnodes=2, master_port=29400).train.data == "./images"
    file = train_file(data="./images")
    assert file.run_config_under_torchrun(torchrun(nodes=2, local=1)).train.data == "./images"


def test_a_batch_divides_among_the_ranks_of_all_nodes() -> None:
    assert "6 ranks" in refusal(nnodes=3, nproc_per_node=2, master_port=29400)


def test_a_batch_that_the_run_is_to_find_is_not_divided_yet() -> None:
    assert run_config(nproc_per_node=3, batch=-1).train.batch == -1


def test_the_largest_batch_that_a_run_may_find_has_a_sample_for_each_rank() -> None:
    assert run_config(nproc_per_node=3, batch=-1, nbs=3).train.nbs == 3
    assert refusal(nproc_per_node=3, batch=-1, nbs=2).startswith("nbs: ")
    assert "6 ranks; the least for them is 6" in refusal(nnodes=3, nproc_per_node=2, master_port=29400, batch=-1, nbs=5)
    assert "2 devices" in refusal(device="0,1", strategy="dp", batch=-1, nbs=1)
    assert run_config(nproc_per_node=2, batch=4, nbs=1).train.nbs == 1  # there it is no limit


def test_one_rank_has_all_devices_with_dp_and_the_batch_divides_among_them() -> None:
    config = run_config(device="0,1", strategy="dp")
    assert (config.devices, config.local_world_size, config.world_size) == (("cuda:0", "cuda:1"), 1, 1)
    assert "3 devices" in refusal(device="0,1,2", strategy="dp")


@pytest.mark.parametrize(
    "fields",
    [
        {"strategy": "single", "nproc_per_node": 2},
        {"strategy": "single", "device": "0,1"},
        {"strategy": "single", "nnodes": 2, "master_port": 29400},
        {"strategy": "dp", "nproc_per_node": 2},
        {"strategy": "dp", "device": "mps"},
        {"strategy": "dp", "device": "0,1", "nnodes": 2, "master_port": 29400},
    ],
)
def test_a_strategy_that_the_devices_do_not_suit_is_refused(fields: dict[str, Any]) -> None:
    assert refusal(**fields).startswith("strategy: ")


def torchrun(*, nodes: int = 1, local: int, node_rank: int = 0) -> RankEnvironment:
    return RankEnvironment(
        rank=node_rank * local,
        local_rank=0,
        world_size=nodes * local,
        local_world_size=local,
        node_rank=node_rank,
        master_addr="alpha",
        master_port=29400,
    )


def test_under_torchrun_the_nodes_are_torchruns_and_the_devices_those_of_each_node() -> None:
    file = train_file(nnodes=5, nproc_per_node=3, master_port=1)
    config = file.run_config_under_torchrun(torchrun(nodes=2, local=2, node_rank=1))
    assert (config.devices, config.nnodes, config.node_rank, config.world_size) == (("cpu", "cpu"), 2, 1, 4)

    config = replace(file, device="cuda:2,cuda:3").run_config_under_torchrun(torchrun(nodes=2, local=2))
    assert config.devices == ("cuda:2", "cuda:3")


def test_under_torchrun_one_node_leaves_no_port_for_a_later_launcher_to_insist_on() -> None:
    config = train_file().run_config_under_torchrun(torchrun(local=2))
    assert (config.master_addr, config.master_port) == ("127.0.0.1", 0)
    config = train_file().run_config_under_torchrun(torchrun(nodes=2, local=2))
    assert (config.master_addr, config.master_port) == ("alpha", 29400)


@pytest.mark.parametrize(
    ("device", "ranks", "devices"),
    [
        ("cuda:3,cuda:1", 2, ("cuda:3", "cuda:1")),
        ("cuda:1", 1, ("cuda:1",)),
        ("cuda:0", 2, ("cuda:0", "cuda:1")),
        ("cuda:4,cuda:5,cuda:6", 2, ("cuda:0", "cuda:1")),
        ("cpu", 2, ("cpu", "cpu")),
        ("mps", 1, ("mps",)),
    ],
)
def test_under_torchrun_the_device_list_yields_to_the_local_rank_unless_it_has_one_for_each(
    device: str, ranks: int, devices: tuple[str, ...]
) -> None:
    assert replace(train_file(), device=device).run_config_under_torchrun(torchrun(local=ranks)).devices == devices


def test_under_torchrun_a_device_that_ranks_cannot_share_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"device: torchrun has started 2 .* 'mps'"):
        train_file(device="mps").run_config_under_torchrun(torchrun(local=2))


def test_under_torchrun_every_node_has_as_many_ranks() -> None:
    uneven = RankEnvironment(rank=2, local_rank=0, world_size=3, local_world_size=2, node_rank=1, master_port=29400)
    with pytest.raises(ConfigError, match="nproc-per-node"):
        train_file(batch=6).run_config_under_torchrun(uneven)


@pytest.mark.parametrize("strategy", ["dp", "single"])
def test_under_torchrun_a_strategy_of_one_process_takes_one(strategy: str) -> None:
    file = train_file(strategy=strategy)
    with pytest.raises(ConfigError, match="torchrun has started 2"):
        file.run_config_under_torchrun(torchrun(local=2))
    assert file.run_config_under_torchrun(torchrun(local=1)).world_size == 1
    if strategy == "dp":
        config = replace(file, device="cuda:0,cuda:1").run_config_under_torchrun(torchrun(local=1))
        assert config.devices == ("cuda:0", "cuda:1")
