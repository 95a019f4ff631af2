"""Leases that run out: which attempts are lost then, by whom, and how often."""

import threading

from jobs.states import Outcome
from jobs.store import attempts, leases
from tests.integration.store.conftest import Service
from tests.integration.store.test_attempts import renew
from tests.integration.store.turns import in_threads


def test_an_attempt_whose_leases_have_run_out_is_lost(service: Service) -> None:
    placement = service.run("0,1")
    service.run_out(placement)

    assert service.expire() == [placement.id]

    job = service.job(placement.job_id)
    assert (job.state, job.retries) == ("queued", 1)
    assert job.failure is not None
    assert job.failure["cause"] == "lost"
    assert service.live_leases() == []


def test_an_attempt_that_nobody_ever_claimed_is_lost_when_its_leases_run_out_and_spends_no_retry(
    service: Service,
) -> None:
    placement = service.launch(max_retries=0)
    service.run_out(placement)

    assert service.expire() == [placement.id]

    job, (attempt,) = service.job(placement.job_id), service.attempts(placement.job_id)
    assert (job.state, job.retries, attempt.outcome) == ("queued", 0, "lost")


def test_only_what_has_run_out_is_lost(service: Service) -> None:
    mine, other = service.run("0"), service.run("1")
    service.run_out(mine)

    assert service.expire() == [mine.id]
    assert service.state(other.job_id) == "running"
    assert service.expire() == []


def test_an_attempt_that_renews_before_anybody_looks_is_not_lost(service: Service) -> None:
    placement = service.run()
    service.run_out(placement)
    renew(service, placement)

    assert service.expire() == []
    assert service.state(placement.job_id) == "running"


def test_an_attempt_that_renews_while_somebody_looks_is_not_lost(postgres_service: Service) -> None:
    service, database = postgres_service, postgres_service.database
    placement = service.run()
    service.run_out(placement)

    with database.session_scope() as session:
        leases.renew(session, placement)
        assert service.expire() == []
    assert service.expire() == []

    assert service.state(placement.job_id) == "running"


def test_of_those_who_expire_at_the_same_time_each_attempt_is_lost_once(service: Service) -> None:
    placements = [service.run(device) for device in ("0", "1", "cpu", "cpu")]
    for placement in placements:
        service.run_out(placement)
    together = threading.Barrier(4)
    lost: list[int] = []
    errors: list[BaseException] = []

    def work() -> None:
        together.wait()
        try:
            lost.extend(service.expire())
        except BaseException as error:  # noqa: BLE001  # looked at by the test's own thread
            errors.append(error)

    in_threads(4, work)

    assert errors == []
    assert sorted(lost) == [placement.id for placement in placements]


def test_only_run_directories_that_ended_long_enough_ago_are_told(service: Service) -> None:
    ended, running = service.run("0"), service.run("1")
    service.end(ended, Outcome.SUCCEEDED)
    asked = [ended.run_dir, running.run_dir, "/somewhere/else"]

    def found(host_name: str, run_dirs: list[str], for_s: float) -> list[str]:
        with service.database.session_scope(read_only=True) as session:
            placements = attempts.ended_placements(session, host_name, run_dirs=run_dirs, for_s=for_s)
        return [placement.run_dir for placement in placements]

    assert found("alpha", asked, 0) == [ended.run_dir]
    assert found("alpha", asked, 3600) == []
    assert found("beta", asked, 0) == []
    assert found("alpha", [], 0) == []
