"""How every process of the service speaks to its broker: what may be lost, and what may never give up."""

import pytest

from jobs.wakeups import LAUNCH, PLAN, host_queue, make_celery


def test_a_worker_waits_for_its_broker_for_ever() -> None:
    conf = make_celery("redis://127.0.0.1:1/0").conf

    assert conf.broker_connection_max_retries is None  # Celery's own default ends a worker after 100
    assert conf.broker_connection_retry_on_startup is True


def test_a_message_is_acknowledged_on_arrival_and_nothing_is_kept_of_it() -> None:
    conf = make_celery("redis://127.0.0.1:1/0").conf

    assert not conf.task_acks_late
    assert not conf.result_backend
    assert conf.accept_content == ["json"]


@pytest.mark.parametrize("task", [PLAN, LAUNCH])
def test_a_worker_knows_the_tasks_that_wake_ups_name(task: str) -> None:
    from worker.app import app

    assert task in app.tasks


def test_each_host_has_a_queue_of_its_own() -> None:
    assert host_queue("alpha") != host_queue("beta")
