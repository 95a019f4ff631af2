"""Run lengths: how COCO writes which pixels an object has, by runs of pixels without and with it, column by column."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_FIRST = ord("0")
"""The character of the number 0; the others follow."""
_VALUE, _SIGN, _GOES_ON = 0x1F, 0x10, 0x20
"""Bits of a character: those of the number, the last character's sign, and whether another character follows."""


def check_run_lengths(counts: Any, size: tuple[int, int]) -> None:
    """Raise ValueError or TypeError unless `counts` are run lengths of an image of this height and width.

    They are a list of numbers, or compressed as pycocotools does it. It draws both without a look at what they say, and
    fails, if at all, in the middle of training.
    """
    runs = _decompressed(counts) if isinstance(counts, str) else _numbers(counts)
    if len(runs) and runs.min() < 0:
        raise ValueError(f"a run of {runs.min():.0f} pixels")
    if runs.sum() != size[0] * size[1]:
        raise ValueError(f"{runs.sum():.0f} pixels, and an image of {size[1]} by {size[0]} has {size[0] * size[1]}")


def _numbers(counts: Sequence[Any]) -> NDArray[np.float64]:
    if not isinstance(counts, list):
        raise TypeError(f"counts are a {type(counts).__name__}")
    runs = np.array(counts, dtype=np.float64)
    if runs.ndim != 1 or not (np.isfinite(runs) & (runs == np.floor(runs))).all():
        raise ValueError("counts have to be whole numbers")
    return runs


def _decompressed(counts: str) -> NDArray[np.float64]:
    """Undo pycocotools' rleToString: numbers of 5 bits a character, from the third on less the last but one's."""
    codes = np.frombuffer(counts.encode("ascii"), np.uint8).astype(np.int64) - _FIRST
    if len(codes) == 0 or codes.min() < 0 or codes.max() > (_VALUE | _GOES_ON) or codes[-1] & _GOES_ON:
        raise ValueError("counts are no compressed run lengths")
    lasts = np.flatnonzero(codes & _GOES_ON == 0)
    firsts = np.concatenate([[0], lasts[:-1] + 1])
    lengths = lasts - firsts + 1
    if lengths.max() > _LONGEST:
        raise ValueError("counts have a number that is too large")
    places = np.arange(len(codes)) - np.repeat(firsts, lengths)
    numbers = np.add.reduceat((codes & _VALUE) << (5 * places), firsts)
    numbers -= (codes[lasts] & _SIGN != 0).astype(np.int64) << (5 * lengths)
    # Each is the difference to the last but one, of which the first two have none, and the third's is 0.
    numbers[1::2] = numbers[1::2].cumsum()
    numbers[2::2] = numbers[2::2].cumsum()
    return numbers.astype(np.float64)


_LONGEST = 7
"""Characters of a number of 32 bits and a sign."""
