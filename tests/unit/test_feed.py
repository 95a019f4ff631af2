"""Positions in the feed, as they are written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.feed import Position

NUMBERS = st.integers(min_value=0, max_value=2**63 - 1)


@given(NUMBERS, NUMBERS)
def test_a_position_is_read_as_it_was_written(xid: int, number: int) -> None:
    position = Position(xid, number)
    assert Position.parse(str(position)) == position


@pytest.mark.parametrize(
    "text", ["", "1", "1-", "-1", "1-2-3", "1_0-2", " 1-2", "1-2\n", "१-२", "+1-2", f"{2**63}-1", "1-" + "9" * 19]
)
def test_what_is_no_position_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a position of the feed"):
        Position.parse(text)
