"""Two workers under one host name: one cares for the host, and when it dies the other does, at once."""

import psutil

from jobs.states import Intent, Outcome, State
from jobs.store import hosts
from tests.service import Service
from tests.waiting import wait_until
from trainer.process_identity import identity


def holder(service: Service) -> str | None:
    with service.database.session_scope(read_only=True) as session:
        return hosts.worker_of(session, "alpha")


def test_a_second_worker_of_a_name_cares_for_nothing_until_the_first_is_dead_and_then_at_once(
    service: Service,
) -> None:
    # So long that the second cannot come to the name by waiting for the first to be forgotten.
    first = service.start_worker(host_timeout_s=600)
    second = service.spawn_worker(log_name="second", host_timeout_s=600)
    wait_until(
        lambda: "host_name_taken" in service.worker_log("second"),
        timeout_s=30,
        what=lambda: f"the second worker to find the name taken; its log:\n{service.worker_log('second')}",
    )
    under_first = service.submit_program("0", pace_s=10)
    service.wait_for_step(under_first, 1)
    assert holder(service) == identity(first.pid)
    assert psutil.Process(service.supervisor_pid(under_first)).ppid() == first.pid

    first.kill()
    first.wait()

    second_is = identity(second.pid)
    wait_until(
        lambda: holder(service) == second_is,
        timeout_s=10,
        what=lambda: f"the second worker to take over; its log:\n{service.worker_log('second')}",
    )
    under_second = service.submit_program("1", steps=10)
    service.wait_for(under_second, State.SUCCEEDED)
    service.set_intent(under_first, Intent.CANCEL)
    service.wait_for(under_first, State.CANCELLED)
    assert [attempt.outcome for attempt in service.attempts(under_first)] == [Outcome.CANCELLED]
    assert "supervisor_started" in service.worker_log("second")
    service.assert_laws_held(under_first, under_second)


def test_a_worker_that_was_stopped_until_another_took_its_name_cares_for_nothing_any_more(service: Service) -> None:
    first = psutil.Process(service.start_worker(host_timeout_s=2).pid)
    first.suspend()
    try:
        second = service.spawn_worker(log_name="second", host_timeout_s=2)
        second_is = identity(second.pid)
        wait_until(
            lambda: holder(service) == second_is,
            timeout_s=30,
            what=lambda: f"the second worker to take over; its log:\n{service.worker_log('second')}",
        )
    finally:
        first.resume()

    wait_until(
        lambda: "host_name_taken" in service.worker_log(),
        timeout_s=30,
        what=lambda: f"the first worker to learn that it lost its name; its log:\n{service.worker_log()}",
    )
    job_id = service.submit_program("0", steps=10)
    service.wait_for(job_id, State.SUCCEEDED)
    assert holder(service) == second_is
    assert "supervisor_started" not in service.worker_log()
    service.assert_laws_held(job_id)
