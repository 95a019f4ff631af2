"""A broker that answers with errors: Celery gives up on it, and the worker, which can do without, does not."""

import pytest
import redis

from jobs.states import State
from jobs.wakeups import PLAN, PLAN_QUEUE, make_celery
from tests.servers import ValkeyServer
from tests.service import Service, program_train
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(240)

ONE_STEP = program_train(steps=1, pace_s=0)


def test_a_worker_outlives_a_broker_that_answers_with_an_error_and_hears_it_again_afterwards(
    service: Service, valkey: ValkeyServer
) -> None:
    worker = service.start_worker()
    with redis.Redis.from_url(valkey.url) as broker:
        broker.set(PLAN_QUEUE, "no list")  # whoever waits for a message of it gets an error now
    wait_until(lambda: "wake_ups_interrupted" in service.worker_log(), timeout_s=30, what=service.worker_log)

    job_id = service.submit_exactly("0", train=ONE_STEP)
    service.wait_for(job_id, State.SUCCEEDED)

    valkey.flushall()
    with make_celery(valkey.url) as sender:
        sender.send_task(PLAN, args=[job_id], queue=PLAN_QUEUE)
    wait_until(lambda: valkey.waiting(PLAN_QUEUE) == 0, timeout_s=30, what=service.worker_log)
    worker.terminate()
    assert worker.wait(timeout=30) == 0
    service.assert_laws_held(job_id)
