"""The device grammar, token by token."""

import pytest

from trainer.devices import check_strategy, continued_batch, parse_device, per_rank_batch, rank_count, rank_devices
from trainer.errors import ConfigError, DeviceError


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        (0, "cuda:0"),
        ("0", "cuda:0"),
        (" 0 ", "cuda:0"),
        ("cuda:0", "cuda:0"),
        ([0], "cuda:0"),
        (["cuda:0"], "cuda:0"),
        ([0, 1], "cuda:0,cuda:1"),
        ((0, 1), "cuda:0,cuda:1"),
        ("0,1", "cuda:0,cuda:1"),
        ("0, 1", "cuda:0,cuda:1"),
        (["cuda:0", "cuda:1"], "cuda:0,cuda:1"),
        ("cuda:0,cuda:1", "cuda:0,cuda:1"),
        ("1,0", "cuda:1,cuda:0"),
        (["cuda:10", "cuda:11"], "cuda:10,cuda:11"),
        ("cpu", "cpu"),
        ("mps", "mps"),
        ("auto", "auto"),
        (" cpu ", "cpu"),
    ],
    ids=repr,
)
def test_a_device_list_has_one_canonical_form(written: object, canonical: str) -> None:
    assert parse_device(written) == canonical


@pytest.mark.parametrize(
    ("written", "token"),
    [
        ("0,0", "'0'"),
        ([1, 1], "1"),
        ("cuda:0,cuda:0", "'cuda:0'"),
        ("-1", "'-1'"),
        (-1, "-1"),
        ("0,-1", "'-1'"),
        ("", "''"),
        ("cuda:", "'cuda:'"),
        ("cuda", "'cuda'"),
        ("cuda:-1", "'cuda:-1'"),
        ("cuda:01", "'cuda:01'"),
        ("01", "'01'"),
        ("0-3", "'0-3'"),
        ("cuda:0,1", "'1'"),
        ("0,cuda:1", "'0'"),
        ("0,,1", "''"),
        ("0,", "''"),
        (",", "''"),
        (True, "True"),
        ([0, False], "False"),
        ("cuda:0,cpu", "'cpu'"),
        ("cpu,cpu", "'cpu'"),
        (["cpu"], "'cpu'"),
        (["auto"], "'auto'"),
        (["0", "1"], "'0'"),
        ([], "empty"),
        (None, "None"),
        (1.0, "1.0"),
        ({"count": 2}, "count"),
        ("gpu", "'gpu'"),
        ("CUDA:0", "'CUDA:0'"),
        ("0x1", "'0x1'"),
        ("\u0661", "'\u0661'"),
        (10_000, "10000"),
        ([[0]], "[0]"),
        ("0;1", "'0;1'"),
        ("0 1", "'0 1'"),
    ],
    ids=repr,
)
def test_anything_else_is_an_error_that_names_the_token(written: object, token: str) -> None:
    with pytest.raises(DeviceError) as raised:
        parse_device(written)
    assert token in str(raised.value)
    assert str(raised.value).startswith("device: ")


def test_an_endless_token_is_not_repeated_whole() -> None:
    with pytest.raises(DeviceError) as raised:
        parse_device("9" * 100_000)
    assert len(str(raised.value)) < 500


def test_each_listed_device_is_a_rank_in_the_order_of_the_list() -> None:
    assert rank_devices("cuda:3,cuda:1") == ("cuda:3", "cuda:1")
    assert rank_devices("cuda:3,cuda:1", nproc_per_node=2) == ("cuda:3", "cuda:1")


def test_the_cpu_has_as_many_ranks_as_asked() -> None:
    assert rank_devices("cpu") == ("cpu",)
    assert rank_devices("cpu", nproc_per_node=3) == ("cpu", "cpu", "cpu")


@pytest.mark.parametrize(
    ("device", "count"), [("cpu", 0), ("cpu", -1), ("cuda:0", 2), ("cuda:0,cuda:1", 1), ("mps", 2)]
)
def test_a_count_that_does_not_fit_is_an_error(device: str, count: int) -> None:
    with pytest.raises(DeviceError, match="nproc_per_node"):
        rank_devices(device, nproc_per_node=count)


def test_auto_names_no_device_before_it_is_resolved() -> None:
    with pytest.raises(DeviceError, match="auto"):
        rank_devices("auto")


def test_a_global_batch_divides_among_the_ranks() -> None:
    assert per_rank_batch(64, 2) == 32
    assert per_rank_batch(64, 1) == 64


@pytest.mark.parametrize(("batch", "ranks", "offer"), [(10, 3, "9 or 12"), (65, 2, "64 or 66"), (1, 2, "2 or 4")])
def test_a_batch_that_does_not_divide_is_an_error_that_offers_two_that_do(batch: int, ranks: int, offer: str) -> None:
    with pytest.raises(ConfigError, match=offer):
        per_rank_batch(batch, ranks)


def test_a_batch_for_one_rank_divides_among_its_devices() -> None:
    with pytest.raises(ConfigError, match="10 samples do not divide among 3 devices"):
        per_rank_batch(10, 3, among="devices")


@pytest.mark.parametrize("devices", [("cpu",), ("cuda:3",), ("auto",)])
@pytest.mark.parametrize("strategy", ["ddp", "dp", "single"])
def test_every_strategy_trains_on_one_device(strategy: str, devices: tuple[str, ...]) -> None:
    check_strategy(strategy, devices)
    assert rank_count(strategy, len(devices)) == 1


def test_one_rank_has_all_devices_with_dp_and_one_each_with_ddp() -> None:
    devices = ("cuda:0", "cuda:1")
    for strategy in ("dp", "ddp"):
        check_strategy(strategy, devices)
    assert (rank_count("dp", 2), rank_count("ddp", 2)) == (1, 2)


@pytest.mark.parametrize(
    ("strategy", "devices", "nnodes", "way_out"),
    [
        ("single", ("cuda:0", "cuda:1"), 1, "name one"),
        ("single", ("cpu", "cpu"), 1, "name one"),
        ("single", ("cuda:0",), 2, "leave strategy out"),
        ("dp", ("cpu", "cpu"), 1, "leave strategy out"),
        ("dp", ("mps",), 1, "leave strategy out"),
        ("dp", ("cuda:0", "cuda:1"), 2, "leave strategy out"),
    ],
)
def test_a_strategy_that_the_devices_do_not_suit_is_an_error_with_the_way_out(
    strategy: str, devices: tuple[str, ...], nnodes: int, way_out: str
) -> None:
    with pytest.raises(ConfigError, match=way_out) as raised:
        check_strategy(strategy, devices, nnodes=nnodes)
    assert str(raised.value).startswith(f"strategy: {strategy!r}")


def test_a_continued_batch_is_the_checkpoints_and_other_numbers_of_ranks_are_offered() -> None:
    assert continued_batch(32, 4) == 32
    with pytest.raises(DeviceError, match=r"the checkpoint's 32 samples.* among 3 ranks; continue on 2 or 4,"):
        continued_batch(32, 3)
    with pytest.raises(DeviceError, match=r"among 12 devices; continue on 9,"):
        continued_batch(9, 12, among="devices")
