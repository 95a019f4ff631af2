"""What a simulation counts while it runs."""

from dataclasses import dataclass, field

from jobs.simulation.stream import StreamJob


@dataclass(frozen=True, slots=True)
class Started:
    """A job that has started for the first time."""

    job_id: int
    job: StreamJob
    wait_s: float
    bound_s: float
    """What its wait must not exceed."""


@dataclass(slots=True)
class Tally:
    """The figures of a run so far. Device-seconds are exact: they are added up from change to change."""

    started: list[Started] = field(default_factory=list)
    ended: int = 0
    backfilled: int = 0
    """Starts of a job while one before it in the line had devices set aside."""
    preemptions: int = 0
    plan_s: list[float] = field(default_factory=list)
    """What each plan took, in seconds of CPU time: it waits for nothing, and a busy machine makes it no longer."""
    elapsed_s: float = 0.0
    held_device_s: float = 0.0
    blocked_s: float = 0.0
    """Time for which a plan had left some job waiting."""
    held_while_blocked_device_s: float = 0.0
    most_blocked: int = 0

    def advance(self, seconds: float, *, held: int, blocked: int) -> None:
        """Let time pass during which nothing changes."""
        self.elapsed_s += seconds
        self.held_device_s += held * seconds
        if blocked:
            self.blocked_s += seconds
            self.held_while_blocked_device_s += held * seconds
        self.most_blocked = max(self.most_blocked, blocked)
