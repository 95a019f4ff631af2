"""Which versions of Node the range in package.json has in it."""

import pytest

from api.web.node import allows


@pytest.mark.parametrize(
    ("version", "is_allowed"),
    [
        ((20, 19, 0), True),
        ((20, 20, 2), True),
        ((20, 18, 9), False),
        ((21, 7, 0), False),
        ((22, 11, 9), False),
        ((22, 12, 0), True),
        ((24, 0, 0), True),
    ],
)
def test_the_range_of_package_json_is_understood(version: tuple[int, int, int], is_allowed: bool) -> None:
    assert allows("^20.19.0 || >=22.12.0", version) is is_allowed
