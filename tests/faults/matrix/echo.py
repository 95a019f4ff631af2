"""An echo of the broker: every wake-up that is sent comes a hundred times, in any order, some of them late."""

import heapq
import random
import threading
import time

import redis

from jobs.wakeups import PLAN_QUEUE, host_queue
from tests.waiting import wait_until

TIMES = 100
LOOK_EVERY_S = 0.02


class Echo(threading.Thread):
    """Sees by MONITOR what is sent, and sends the very same messages again, until closed.

    So a broker delivers again what it believes to be lost: with the same task id, beside the original or long after it.
    """

    def __init__(self, broker_url: str, draws: random.Random, *, within_s: float) -> None:
        """Spread the copies of each message over `within_s` seconds from when it was sent."""
        super().__init__(name="echo", daemon=True)
        self._draws = draws
        self._within_s = within_s
        self._client = redis.Redis.from_url(broker_url)
        self._seen: set[str] = set()
        self._heard: dict[str, int] = {}
        """Messages by queue."""
        self._due: list[tuple[float, str, str]] = []
        """When to send which message to which queue, the next one first."""
        self._listens = threading.Event()
        self._closing = threading.Event()

    def start(self) -> None:
        """Start, and return once no message can be missed."""
        super().start()
        assert self._listens.wait(timeout=10)

    def run(self) -> None:
        with self._client.monitor() as sent:  # type: ignore[no-untyped-call]  # redis-py has no types for it
            self._listens.set()
            while not self._closing.is_set():
                while sent.connection.can_read(timeout=LOOK_EVERY_S) and not self._closing.is_set():
                    self._hear(sent.next_command()["command"])
                    self._send_due(time.monotonic())
                self._send_due(time.monotonic())
        self._send_due(float("inf"))

    def close(self) -> None:
        """Send what is still due, which is late by now, and return once the workers have taken all of it."""
        self._closing.set()
        self.join()
        queues = (PLAN_QUEUE, host_queue("alpha"))
        wait_until(
            lambda: not any(self._client.llen(queue) for queue in queues), timeout_s=60, what="all echoes to be heard"
        )
        self._client.close()
        assert all(self._heard.get(queue) for queue in queues), f"wake-ups by queue: {self._heard}"

    def _hear(self, command: str) -> None:
        name, _, arguments = command.partition(" ")
        queue, _, message = arguments.partition(" ")
        if name.upper() != "LPUSH" or message in self._seen:
            return
        self._seen.add(message)
        self._heard[queue] = self._heard.get(queue, 0) + 1
        now = time.monotonic()
        for _copy in range(TIMES - 1):
            heapq.heappush(self._due, (now + self._draws.uniform(0, self._within_s), queue, message))

    def _send_due(self, until: float) -> None:
        with self._client.pipeline(transaction=False) as pipeline:
            while self._due and self._due[0][0] <= until:
                _, queue, message = heapq.heappop(self._due)
                pipeline.lpush(queue, message)
            pipeline.execute()
