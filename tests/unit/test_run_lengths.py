"""Run lengths: those that pycocotools writes are taken, those that say nothing about an image are refused."""

from typing import Any

import numpy as np
import pytest
from pycocotools import mask

from trainer.data.run_lengths import check_run_lengths


@pytest.mark.parametrize("share", [0, 0.02, 0.5, 1])
def test_what_pycocotools_compresses_is_taken_and_not_for_an_image_of_another_size(share: float) -> None:
    random = np.random.default_rng(0)
    for height, width in random.integers(1, 200, (50, 2)).tolist():
        pixels = (random.random((height, width)) < share).astype(np.uint8)
        counts = mask.encode(np.asfortranarray(pixels))["counts"].decode()
        check_run_lengths(counts, (height, width))
        with pytest.raises(ValueError, match=rf"^{height * width} pixels"):
            check_run_lengths(counts, (height, width + 1))


def test_runs_as_numbers_are_taken() -> None:
    check_run_lengths([0, 5, 195], (10, 20))


@pytest.mark.parametrize(
    "counts",
    ["zzzz", "", "0", "ooo", "o" * 50 + "0", "\xff", [3], [], [-5, 205], [2**33], [0.5, 199.5], ["a"], [[1], [2, 3]]],
)
def test_counts_that_say_nothing_about_an_image_are_refused(counts: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        check_run_lengths(counts, (10, 20))


@pytest.mark.parametrize("counts", [{}, None, 5])
def test_what_are_no_counts_is_refused(counts: Any) -> None:
    with pytest.raises(TypeError, match="counts are a "):
        check_run_lengths(counts, (10, 20))
