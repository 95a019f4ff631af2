"""BatchNorm over three ranks is BatchNorm over one: outputs, gradients and buffers."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.children import start_child
from tests.distributed.batchnorm_ranks import CASES, RANKS, STEPS, large_mean, resnet, train

Results = list[dict[str, Any]]


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """What each of three ranks computed, for every case, in one process group."""
    folder = tmp_path_factory.mktemp("ranks")
    processes = [
        start_child(
            [sys.executable, "-m", "tests.distributed.batchnorm_ranks", str(rank), str(RANKS), str(folder)],
            log=folder / f"{rank}.log",
            folder=Path(__file__).parents[2],
            environment=os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"},
        )
        for rank in range(RANKS)
    ]
    try:
        for process in processes:
            status = process.wait(100)
            assert status == 0, "\n".join(log.read_text() for log in sorted(folder.glob("*.log")))
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return [torch.load(folder / f"{rank}.pt") for rank in range(RANKS)]


def together(parts: list[torch.Tensor]) -> torch.Tensor:
    """Put the ranks' shares, dealt out in turn, back into the order of the global batch."""
    whole = torch.empty((sum(len(part) for part in parts), *parts[0].shape[1:]), dtype=parts[0].dtype)
    for rank, part in enumerate(parts):
        whole[rank :: len(parts)] = part
    return whole


def assert_close(one: torch.Tensor, other: torch.Tensor, tolerance: float, what: str) -> None:
    difference = (one.double() - other.double()).abs().max().item()
    assert difference <= tolerance * max(1, other.abs().max().item()), what


@pytest.mark.parametrize("name", CASES)
def test_three_steps_on_three_ranks_are_those_of_one_process(name: str, ranks: Results) -> None:
    case = CASES[name]
    alone = train(case)
    for step in range(len(STEPS)):
        expected = alone["steps"][step]
        for key in ("output", "input"):
            assert_close(
                together([rank[name]["steps"][step][key] for rank in ranks]), expected[key], case.rounding, key
            )
        for key in expected.keys() - {"output", "input"}:
            tolerance = case.rounding if key.startswith("gradient") else case.tolerance
            for rank in ranks:
                assert_close(rank[name]["steps"][step][key], expected[key], tolerance, f"{key} at step {step}")
    for rank in ranks:
        assert rank[name]["state"].keys() == alone["state"].keys()
        assert_close(rank[name]["evaluated"], alone["evaluated"], case.rounding, "evaluated")


@pytest.mark.parametrize("name", CASES)
def test_every_rank_ends_with_the_same_bits(name: str, ranks: Results) -> None:
    first, *others = (rank[name]["state"] for rank in ranks)
    for other in others:
        assert all(torch.equal(first[key], other[key]) for key in first)


def test_a_resnet_on_three_ranks_is_the_resnet_of_one_process(ranks: Results) -> None:
    alone, shared = resnet(), [rank["resnet"] for rank in ranks]
    assert_close(together([rank["logits"] for rank in shared]), alone["logits"], 1e-10, "logits")
    for kind in ("gradients", "buffers"):
        for key, expected in alone[kind].items():
            assert_close(shared[0][kind][key], expected, 1e-10, key)


def test_one_value_per_channel_over_all_ranks_is_refused_on_all_of_them(ranks: Results) -> None:
    for rank in ranks:
        assert "Expected more than 1 value per channel when training" in rank["lone"]["refused"]


def test_ranks_without_any_sample_take_part(ranks: Results) -> None:
    layer, values = torch.nn.BatchNorm1d(2), torch.arange(8.0).view(4, 2).requires_grad_()
    output = layer(values)
    output.sin().sum().backward()
    assert values.grad is not None
    assert [len(rank["lone"]["output"]) for rank in ranks] == [0, 4, 0]
    assert_close(ranks[1]["lone"]["output"], output.detach(), 1e-6, "output")
    assert_close(ranks[1]["lone"]["input"], values.grad, 1e-6, "input")
    assert layer.running_var is not None
    for rank in ranks:
        assert_close(rank["lone"]["var"], layer.running_var, 1e-6, "running_var")


def test_a_layer_that_gets_bfloat16_from_autocast_returns_it(ranks: Results) -> None:
    assert {rank["autocast"].dtype for rank in ranks} == {torch.bfloat16}


def test_no_digits_of_the_variance_are_lost_where_the_mean_is_large(ranks: Results) -> None:
    exact = large_mean(dtype=torch.float64)
    for rank in ranks:
        assert_close(rank["large mean"], exact, 1e-6, "running_var")
