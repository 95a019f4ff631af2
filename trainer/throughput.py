"""Throughput: how fast samples are trained on."""

import time


class Throughput:
    """Samples per second since it was last asked."""

    def __init__(self) -> None:
        self._samples, self._since_s = 0, time.monotonic()

    def count(self, samples: int) -> None:
        self._samples += samples

    def per_second(self) -> float:
        now_s = time.monotonic()
        rate = self._samples / max(now_s - self._since_s, 1e-9)
        self._samples, self._since_s = 0, now_s
        return rate
