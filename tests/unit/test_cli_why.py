"""Why a job waits or has failed, and what its user can do, as the command tells it."""

import re
from datetime import UTC, datetime, timedelta

from rankzero.cli.advice import ADVICE, advice_on
from rankzero.cli.why import account_for
from rankzero.models import Failure
from tests.unit.answered_job import job
from trainer.errors import Cause


def test_what_a_waiting_job_waits_for_and_when_it_starts_is_told() -> None:
    soon = datetime.now(UTC) + timedelta(minutes=10, seconds=30)
    in_the_way = [{"host": "alpha", "device": f"cuda:{index}", "job_id": 3 + index} for index in (0, 1)]
    account = account_for(
        job(
            "queued", reason="waits for cuda:0 (job 3) on alpha", position=2, predicted_start=soon, waits_for=in_the_way
        ),
        [],
    )
    assert account.because[:2] == ["waits for cuda:0 (job 3) on alpha", "cuda:1 on alpha: job 4"]
    assert account.because[2].startswith("its place in the line: 2; starts in about 10m ")
    assert account.to_do == ["rankzero set 7 priority=N moves it in the line; its priority is 50"]


def test_of_a_job_that_nobody_has_planned_it_is_told_who_would_and_of_one_that_was_lost_why() -> None:
    lost = Failure(cause="hang", message="rank 1 made no progress for 60 s", rank=1)
    account = account_for(job("queued", failure=lost, not_before=datetime.now(UTC) + timedelta(seconds=90)), [])
    assert account.because[0] == "waits for the next plan, which a worker makes within seconds"
    assert re.fullmatch(r"it rests for 1m (29|30)s more after an attempt was lost", account.because[1])
    assert account.because[2] == "its attempt before: hang: rank 1 made no progress for 60 s"
    assert "rankzero doctor" in account.to_do[0]


def test_every_cause_of_a_failure_has_advice_that_names_the_job() -> None:
    assert set(ADVICE) == {cause.value for cause in Cause}
    for cause in Cause:
        assert "{" not in advice_on(cause, 7)
    assert advice_on("of_a_later_release", 7).endswith("rankzero retry 7 (it goes on from its last checkpoint)")
