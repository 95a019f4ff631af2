"""The use that the fair share goes by."""

from math import log

import pytest

from jobs.planner.view import Quota
from jobs.simulation.usage import Usage

ADA = ("user", "ada")


def test_what_was_used_counts_half_after_a_half_life() -> None:
    usage = Usage((), half_life_s=1000)
    usage.hold("ada", {}, 2, at=0)
    usage.hold("ada", {}, -2, at=1)
    assert usage.at(1)[ADA] == pytest.approx(2, rel=1e-3)
    assert usage.at(1001)[ADA] == pytest.approx(usage.at(1)[ADA] / 2)


def test_what_is_held_counts_as_it_is_used() -> None:
    usage = Usage((), half_life_s=1000)
    usage.hold("ada", {}, 3, at=0)
    # Held for ever, it comes to rate / decay; after one half-life it is half way there.
    assert usage.at(1000)[ADA] == pytest.approx(3 * 1000 / log(2) / 2)


def test_it_does_not_matter_how_often_it_is_looked_at() -> None:
    once, often = Usage((), half_life_s=500), Usage((), half_life_s=500)
    once.hold("ada", {}, 1, at=0)
    for at in range(100):
        often.hold("ada", {}, 1 if at == 0 else 0, at=at)
    assert often.at(100) == pytest.approx(once.at(100))


def test_only_labels_with_a_quota_are_counted_and_no_user_is_a_user() -> None:
    usage = Usage((Quota(("label", "team=vision")),), half_life_s=1000)
    usage.hold(None, {"team": "vision", "name": "x"}, 1, at=0)
    assert usage.at(0) == {("user", ""): 0, ("label", "team=vision"): 0}
