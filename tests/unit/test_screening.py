"""Screening: each sample is looked at once, what is wrong with it is known everywhere, and the ranks stay alive."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import torch
from torch._C._distributed_c10d import HashStore

from trainer.data.screening import named, screen, survey
from trainer.environment import RankEnvironment
from trainer.errors import DataError
from trainer.process_group import ProcessGroup

ALONE = ProcessGroup.alone(torch.device("cpu"))


def look(index: int) -> None:
    if index % 20 == 7:
        raise DataError(f"sample {index} is broken")


@pytest.mark.parametrize("workers", [0, 2])
def test_broken_samples_are_found_by_index_in_their_order(workers: int) -> None:
    found = screen(50, look, matter="x", num_workers=workers, group=ALONE)
    assert list(found.items()) == [(7, "sample 7 is broken"), (27, "sample 27 is broken"), (47, "sample 47 is broken")]


@pytest.mark.parametrize("workers", [0, 2])
def test_what_is_said_of_each_sample_comes_in_the_order_of_the_samples(workers: int) -> None:
    assert survey(50, lambda index: [index, str(index)], matter="x", num_workers=workers, group=ALONE) == [
        [index, str(index)] for index in range(50)
    ]
    with pytest.raises(DataError, match=r"^sample 7 is broken$"):
        survey(50, look, matter="y", num_workers=workers, group=ALONE)


def test_ranks_survey_a_share_each_and_all_know_what_each_has_found() -> None:
    store, looked = HashStore(), []

    def look_and_note(index: int) -> int:
        looked.append(index)
        return index

    def rank(number: int) -> list[int]:
        environment = RankEnvironment(rank=number, local_rank=number, world_size=3, local_world_size=3)
        group = ProcessGroup(environment, torch.device("cpu"), store)
        return survey(10, look_and_note, matter="x", num_workers=0, group=group)

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(rank, range(3))) == [list(range(10))] * 3
    assert sorted(looked) == list(range(10))


def test_a_rank_says_again_and_again_that_it_is_alive() -> None:
    signs: list[None] = []
    screen(50, look, matter="x", num_workers=0, group=replace(ALONE, alive=lambda: signs.append(None)))
    assert len(signs) == 4


def test_any_other_error_is_no_broken_sample() -> None:
    def fail(index: int) -> None:
        raise MemoryError(index)

    with pytest.raises(MemoryError):
        screen(5, fail, matter="x", num_workers=0, group=ALONE)


def test_ten_reasons_are_told_and_the_others_counted() -> None:
    assert named(["a", "b"]) == "a; b"
    assert named([str(number) for number in range(12)]) == "0; 1; 2; 3; 4; 5; 6; 7; 8; 9; and 2 more"
