"""Preparation of a run: which hang limit it is watched by."""

from typing import Any

import pytest

from jobs.settings import Settings
from jobs.spec import JobSpec
from worker.preparation import hang_limit_s

DIGITS = {"model": "squeezenet1_1", "data": "digits"}
SCRIPT = {"recipe": "script", "options": {"script": "/a/program.py"}}


@pytest.mark.parametrize(
    ("train", "own", "limit"), [(DIGITS, None, 1800), (DIGITS, 60, 60), (SCRIPT, None, None), (SCRIPT, 60, 60)]
)
def test_a_run_is_watched_by_its_jobs_limit_or_the_services_and_a_script_by_its_own_only(
    train: dict[str, Any], own: float | None, limit: float | None
) -> None:
    spec = JobSpec.model_validate({"device": "0", "train": train, "hang_limit_s": own})

    assert hang_limit_s(spec, Settings(hang_limit_s=1800)) == limit
