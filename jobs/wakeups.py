"""Wake-ups: empty messages that spare a waiting worker its tick. Losing one costs at most `tick_s`."""

import threading
from dataclasses import dataclass
from functools import cache

import structlog
from celery import Celery
from kombu.exceptions import KombuError, OperationalError
from redis.exceptions import RedisError

from jobs.settings import get_settings

PLAN = "rankzero.plan"
LAUNCH = "rankzero.launch"
PLAN_QUEUE = "plan"
MOST_WAITING = 1000
"""Wake-ups that wait to be sent; each costs a tick when it is given up."""

UNREACHABLE = (OperationalError, KombuError, RedisError, OSError)
"""What a broker that is down, or is another kind of server, raises."""

log = structlog.get_logger()


def host_queue(host_name: str) -> str:
    """Name of the queue that only this host's worker reads."""
    return f"host.{host_name}"


def make_celery(broker_url: str, *, socket_timeout_s: float = 5) -> Celery:
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
        broker_transport_options={
            "socket_connect_timeout": 1,
            "socket_timeout": socket_timeout_s,
            "max_retries": 0,
        },
        task_publish_retry=False,
    )
    return app


@cache
def get_celery() -> Celery:
    """Return this process's Celery application."""
    return make_celery(get_settings().broker_url)


def wake_planner(job_id: int = 0) -> None:
    """Ask any worker to plan, since this job may start or has freed devices; 0 where it is not about one job.

    Returns at once.
    """
    _get_sender().send(_WakeUp(PLAN, job_id, PLAN_QUEUE))


def wake_host(host_name: str, placement_id: int) -> None:
    """Ask a host's worker to launch a placement. Returns at once."""
    _get_sender().send(_WakeUp(LAUNCH, placement_id, host_queue(host_name)))


def flush(*, timeout_s: float) -> None:
    """Wait until what was to be sent is sent or lost, for a process that is about to end."""
    _get_sender().flush(timeout_s)


def broker_answers() -> bool:
    """Whether the broker takes messages now; waits for its answer for about a second."""
    try:
        with _sending_celery().connection_for_write() as connection:
            connection.ensure_connection(max_retries=0, timeout=1)
    except UNREACHABLE:
        return False
    return True


@dataclass(frozen=True)
class _WakeUp:
    task: str
    subject_id: int
    queue: str


class _Sender(threading.Thread):
    """Sends wake-ups one after another: a broker that does not answer keeps nobody waiting but this thread."""

    def __init__(self) -> None:
        super().__init__(name="wake-ups", daemon=True)
        self._waiting: dict[_WakeUp, None] = {}
        """In order, each once: a burst of the same is one message."""
        self._changed = threading.Condition()
        self._is_sending = False

    def send(self, wake_up: _WakeUp) -> None:
        """Have it sent soon; the oldest ones are given up where too many wait."""
        with self._changed:
            self._waiting[wake_up] = None
            while len(self._waiting) > MOST_WAITING:
                del self._waiting[next(iter(self._waiting))]
            self._changed.notify_all()

    def flush(self, timeout_s: float) -> None:
        """Wait until nothing waits."""
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting and not self._is_sending, timeout=timeout_s)

    def run(self) -> None:
        """Send for ever; after a failure give up all that waits, since the ticks will have done it by then."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting)
                wake_up = next(iter(self._waiting))
                del self._waiting[wake_up]
                self._is_sending = True
            sent = _send(wake_up)
            with self._changed:
                if not sent:
                    self._waiting.clear()
                self._is_sending = False
                self._changed.notify_all()


@cache
def _get_sender() -> _Sender:
    sender = _Sender()
    sender.start()
    return sender


@cache
def _sending_celery() -> Celery:
    """One for sending only, which waits for its broker for a second and no more."""
    return make_celery(get_settings().broker_url, socket_timeout_s=1)


def _send(wake_up: _WakeUp) -> bool:
    try:
        _sending_celery().send_task(wake_up.task, args=[wake_up.subject_id], queue=wake_up.queue, expires=60)
    except UNREACHABLE as error:
        log.warning("wake_up_lost", task=wake_up.task, queue=wake_up.queue, error=str(error))
        return False
    return True
