"""Wake-ups: empty messages that spare a waiting worker its tick. Losing one costs at most `tick_s`."""

from functools import cache

import structlog
from celery import Celery
from kombu.exceptions import KombuError, OperationalError
from redis.exceptions import RedisError

from jobs.settings import get_settings

PLAN = "rankzero.plan"
LAUNCH = "rankzero.launch"
PLAN_QUEUE = "plan"

UNREACHABLE = (OperationalError, KombuError, RedisError, OSError)
"""What a broker that is down, or is another kind of server, raises."""

log = structlog.get_logger()


def host_queue(host_name: str) -> str:
    """Name of the queue that only this host's worker reads."""
    return f"host.{host_name}"


def make_celery(broker_url: str) -> Celery:
    """Return a Celery application set up as every process of the service uses it."""
    app = Celery("rankzero", broker=broker_url)
    app.conf.update(
        task_serializer="json",
        accept_content=["json"],
        task_ignore_result=True,
        result_backend=None,
        # Acknowledged on arrival: a late acknowledgement has the broker deliver again beside a running task.
        task_acks_late=False,
        task_default_queue=PLAN_QUEUE,
        task_create_missing_queues=True,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,  # a worker that gave up on its broker would end, and its tick with it
        worker_hijack_root_logger=False,
        # A wake-up is worth a second of waiting, no more: the tick does the same work.
        broker_transport_options={"socket_connect_timeout": 1, "socket_timeout": 5, "max_retries": 0},
        task_publish_retry=False,
    )
    return app


@cache
def get_celery() -> Celery:
    """Return this process's Celery application."""
    return make_celery(get_settings().broker_url)


def wake_planner(job_id: int) -> None:
    """Ask any worker to plan, since this job may start or has freed devices."""
    _send(PLAN, job_id, PLAN_QUEUE)


def wake_host(host_name: str, placement_id: int) -> None:
    """Ask a host's worker to launch a placement."""
    _send(LAUNCH, placement_id, host_queue(host_name))


def broker_answers() -> bool:
    """Whether the broker takes messages now; waits for its answer for about a second."""
    try:
        with get_celery().connection_for_write() as connection:
            connection.ensure_connection(max_retries=0, timeout=1)
    except UNREACHABLE:
        return False
    return True


def _send(task: str, subject_id: int, queue: str) -> None:
    try:
        get_celery().send_task(task, args=[subject_id], queue=queue, expires=60)
    except UNREACHABLE as error:
        log.warning("wake_up_lost", task=task, queue=queue, error=str(error))
