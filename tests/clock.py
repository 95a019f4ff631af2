"""A clock that stands still unless a test moves it."""


class Clock:
    """Stands in for `worker.clock.clock` and its kind."""

    def __init__(self) -> None:
        self.at = 1000.0
        """Seconds."""

    def __call__(self) -> float:
        return self.at
