"""The roll call: ranks that do not run the same are told, all of them, before they join."""

import errno
import math
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from threading import Thread
from typing import Any, TypeVar

import pytest
import torch
from torch.distributed import Store, TCPStore  # type: ignore[attr-defined]  # exported where torch has distributed

from trainer import roll_call
from trainer.config import TrainConfig
from trainer.environment import RankEnvironment
from trainer.errors import ConfigError
from trainer.process_group import ProcessGroup, meet, shared, tell_end
from trainer.roll_call import Deadline, PeersMissingError, agree, awaited, call_roll
from trainer.run_dir import RunConfig

Rank = tuple[RankEnvironment, RunConfig]
Answer = TypeVar("Answer")


def rank(number: int, *, nnodes: int = 2, node_rank: int | None = None, devices: int = 1, **fields: Any) -> Rank:
    """A rank of a run on `nnodes` nodes, each with `devices` devices."""
    placement = {"simulated": fields.pop("simulated", False), "device": fields.pop("device", "cpu")}
    node_rank = number // devices if node_rank is None else node_rank
    config = RunConfig(
        train=TrainConfig.model_validate({"model": "resnet18", "data": "digits", "timeout_s": 20} | fields),
        devices=(placement["device"],) * devices,
        simulated=placement["simulated"],
        nnodes=nnodes,
        node_rank=node_rank,
        master_port=1,
    )
    environment = RankEnvironment(
        rank=number,
        local_rank=number % devices,
        world_size=nnodes * devices,
        local_world_size=devices,
        node_rank=node_rank,
    )
    return environment, config


def words(*ranks: Rank, objections: dict[int, Exception] | None = None) -> list[str]:
    """What each rank is told, in a real store that rank 0 serves: nothing where the run begins."""

    def answer(store: Store, environment: RankEnvironment) -> str:
        config = next(config for known, config in ranks if known is environment)
        try:
            objection = (objections or {}).get(environment.rank)
            call_roll(store, environment, config, timeout_s=20, objection=objection)
        except ConfigError as error:
            return str(error)
        return ""

    return in_one_store(answer, *ranks)


def in_one_store(come: Callable[[Store, RankEnvironment], Answer], *ranks: Rank) -> list[Answer]:
    """What `come` returns on each rank, all of them at once, in a real store that rank 0 serves."""
    server = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False, timeout=timedelta(seconds=20))

    def answer(each: Rank) -> Answer:
        environment, _ = each
        store = server
        if environment.rank > 0:
            store = TCPStore("127.0.0.1", server.port, wait_for_workers=False, timeout=timedelta(seconds=20))
        return come(store, environment)

    with ThreadPoolExecutor(len(ranks)) as pool:
        return list(pool.map(answer, ranks))


def test_ranks_of_one_run_are_let_in() -> None:
    assert words(*(rank(number, devices=2) for number in range(4))) == [""] * 4


@pytest.mark.parametrize(
    ("other", "field"),
    [
        (lambda: rank(1, lr=0.2), "lr is 0.2 here, and 0.1 on node 0"),
        (lambda: rank(1, model="resnet34"), "model is 'resnet34' here"),
        (lambda: rank(1, nnodes=3), "nnodes is 3 here, and 2 on node 0"),
        (lambda: rank(1, device="cuda:0"), "device is 'cuda' here, and 'cpu' on node 0"),
        (lambda: rank(1, device="cuda:0", simulated=True), "simulated is True here"),
    ],
)
def test_a_rank_of_another_run_is_refused_and_all_are_told_why(other: Callable[[], Rank], field: str) -> None:
    first, second = words(rank(0), other())
    assert field in second
    assert first.startswith("node 1 takes no part: ")
    assert field in first


def test_a_node_with_another_number_of_devices_is_refused_though_its_ranks_never_add_up() -> None:
    answers = words(rank(0, devices=2), rank(1, devices=2), rank(1, devices=1))
    assert all("nproc_per_node is 1 here, and 2 on node 0" in answer for answer in answers)


@pytest.mark.parametrize("number", [0, 1])
def test_a_rank_that_lacks_its_device_is_not_waited_for(number: int) -> None:
    missing = "device: 'cuda:7' is not on this host"
    answers = words(rank(0), rank(1), objections={number: ConfigError(missing)})
    assert answers[number] == missing
    assert answers[1 - number] == f"node {number} takes no part: {missing}"


def test_two_nodes_of_one_node_rank_are_refused() -> None:
    answers = words(rank(0, nnodes=3), rank(1, nnodes=3), rank(1, nnodes=3))
    assert any("give each node a node_rank of its own" in answer for answer in answers[1:])
    assert all(answers)


def test_rank_0_waits_for_the_others_no_longer_than_a_collective_may_take() -> None:
    environment, config = rank(0)
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    told: list[int] = []
    with pytest.raises(PeersMissingError, match="only 1 of 2 ranks have come within 1 s"):
        call_roll(store, environment, config, timeout_s=1, tell=told.append)
    assert set(told) == {1}


@pytest.mark.parametrize("number", [0, 1])
def test_what_keeps_one_rank_from_a_matter_is_raised_there_and_told_to_the_others(number: int) -> None:
    full = OSError(errno.ENOSPC, "No space left on device")

    def come(store: Store, environment: RankEnvironment) -> Exception | None:
        try:
            agree(
                store,
                environment,
                "run_dir",
                objection=full if environment.rank == number else None,
                deadline=Deadline(20),
            )
        except (OSError, ConfigError) as error:
            return error
        return None

    answers = in_one_store(come, *(rank(each) for each in range(3)))
    assert answers[number] is full
    others = [answer for each, answer in enumerate(answers) if each != number]
    assert all(isinstance(other, ConfigError) for other in others)
    assert all(str(other).endswith("No space left on device") for other in others)


def test_a_rank_that_cannot_say_what_it_runs_is_not_waited_for() -> None:
    def come(store: Store, environment: RankEnvironment) -> str:
        uneven = ConfigError("nproc-per-node: start as many on every node") if environment.rank == 0 else None
        config = rank(environment.rank)[1] if environment.rank > 0 else None
        with pytest.raises(ConfigError) as refused:
            call_roll(store, environment, config, timeout_s=20, objection=uneven)
        return str(refused.value)

    own, other = in_one_store(come, rank(0), rank(1))
    assert own == "nproc-per-node: start as many on every node"
    assert other == f"node 0 takes no part: {own}"


def test_nobody_waits_for_word_of_a_rank_0_that_has_ended_or_is_gone() -> None:
    def come(store: Store, environment: RankEnvironment) -> str:
        if environment.rank == 0:
            tell_end(store, rank=0)
            return ""
        with pytest.raises(PeersMissingError) as missing:
            shared(store, "batch", "", rank=environment.rank)
        return str(missing.value)

    assert in_one_store(come, rank(0), rank(1))[1].startswith("rank 0 has ended")

    silent = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False, timeout=timedelta(seconds=1))
    with pytest.raises(PeersMissingError, match="no word of rank 0 within 1 s"):
        awaited(silent, "verdict", deadline=Deadline(1))


class SlowStore:
    """A store, and the clock of those who wait at it: some keys are written at a known second, all others never."""

    timeout = timedelta(seconds=20)

    def __init__(self, **written_at_s: float) -> None:
        self.now_s = 0.0
        self._written_at_s = {key.replace("__", "/"): second for key, second in written_at_s.items()}

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    def check(self, keys: list[str]) -> bool:
        return all(self._written_at_s.get(key, math.inf) <= self.now_s for key in keys)

    def get(self, key: str) -> bytes:
        assert self.check([key]), "a real store would wait for it, for all of its own timeout"
        return b"0"  # no parts of a value, and nothing that a rank 0 runs

    def set(self, _key: str, _value: str) -> None:
        pass

    def add(self, _key: str, number: int) -> int:
        return number


def test_a_wait_of_several_parts_ends_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    def gives_up_at(store: SlowStore, wait: Callable[[Any], object]) -> float:
        monkeypatch.setattr(roll_call, "time", store)
        with pytest.raises(PeersMissingError, match=r"within 20 s \(timeout_s\)"):
            wait(store)
        return store.now_s

    def calls_roll(store: Any) -> None:
        call_roll(store, *rank(1), timeout_s=20)

    def exchanges(store: Any) -> None:
        ProcessGroup(rank(2)[0], torch.device("cpu"), store).exchange("found", "")

    about_20 = pytest.approx(20, abs=0.1)
    assert gives_up_at(SlowStore(), lambda store: shared(store, "batch", "", rank=1)) == about_20
    assert gives_up_at(SlowStore(roll_call__run=15), calls_roll) == about_20
    assert gives_up_at(SlowStore(found__rank__0=15), exchanges) == about_20


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n"], ids=["that is silent", "that talks"])
def test_another_program_at_node_0s_port_is_told_of_in_time(answer: bytes) -> None:
    def take(connections: list[socket.socket]) -> None:
        with suppress(OSError):  # the end of the test
            while True:
                connections.append(server.accept()[0])
                connections[-1].sendall(answer)

    taken: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        Thread(target=take, args=(taken,), daemon=True).start()
        node_1 = RankEnvironment(
            rank=1, local_rank=0, world_size=2, local_world_size=1, node_rank=1, master_port=server.getsockname()[1]
        )
        with pytest.raises(PeersMissingError, match=r"within 1 s \(timeout_s\)"):
            meet(node_1, "", timedelta(seconds=1))
        with suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)  # Linux: `accept` would wait on
    for connection in taken:
        connection.close()
