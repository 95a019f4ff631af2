"""Where the control groups of runs are."""

from pathlib import Path

import pytest

from worker.cgroups import parent_of_runs

SLICE = Path("/sys/fs/cgroup/system.slice")


@pytest.mark.parametrize("unit", ["rankzero.service", "rankzero.worker.service", "rankzero-worker.service"])
def test_a_worker_makes_the_groups_of_its_runs_in_its_own_whatever_its_unit_is_called(unit: str) -> None:
    assert parent_of_runs(SLICE / unit) == SLICE / unit


def test_a_worker_that_a_run_has_started_makes_them_next_to_that_run_s() -> None:
    assert parent_of_runs(SLICE / "rankzero.job-7.attempt-1-0a1b2c3d") == SLICE
