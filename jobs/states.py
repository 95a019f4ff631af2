"""The states of a job, who leaves them and who rescues them; the one table of legal transitions."""

from enum import StrEnum


class State(StrEnum):
    """Where a job is. Written along TRANSITIONS only: by the planner, by whoever ends an attempt, and, where no attempt
    is live, by the intent itself."""

    QUEUED = "queued"
    """Waits for its devices; `reason` says for what. Left when the planner starts an attempt, or at once on the intent
    to pause or cancel. Rescue: every worker's tick plans anew."""
    STARTING = "starting"
    """An attempt holds its leases and its ranks come up. Left at the run's first record, or when the attempt ends.
    Rescue: the host's worker when the supervisor dies or never came, any worker when the lease runs out."""
    RUNNING = "running"
    """The ranks train. Left when the attempt ends. Rescue: as for starting."""
    PAUSED = "paused"
    """Stopped on request with its devices free and its checkpoint kept. Left on the intent to run or cancel. Nothing of
    it runs, so there is nothing to rescue."""
    SUCCEEDED = "succeeded"
    """Rank 0 wrote the completion record. Final."""
    FAILED = "failed"
    """Ended by a fault that a retry would not mend, or with its retries spent; `failure` says which. Left only when its
    user asks for another try."""
    CANCELLED = "cancelled"
    """Ended because the user asked for it. Final."""

    @property
    def is_terminal(self) -> bool:
        """Whether nothing more happens by itself."""
        return self in (State.SUCCEEDED, State.FAILED, State.CANCELLED)


TRANSITIONS: dict[State, frozenset[State]] = {
    State.QUEUED: frozenset({State.STARTING, State.PAUSED, State.CANCELLED}),
    State.STARTING: frozenset({State.RUNNING, State.QUEUED, State.PAUSED, State.FAILED, State.CANCELLED}),
    State.RUNNING: frozenset({State.SUCCEEDED, State.QUEUED, State.PAUSED, State.FAILED, State.CANCELLED}),
    State.PAUSED: frozenset({State.QUEUED, State.CANCELLED}),
    State.SUCCEEDED: frozenset(),
    State.FAILED: frozenset({State.QUEUED}),
    State.CANCELLED: frozenset(),
}
"""Every legal change of a job's state; `jobs.store.transitions` applies them, docs/job-lifecycle.md draws them."""


class Intent(StrEnum):
    """What the user wants of a job. Written by the user's verbs only; the service converges on it."""

    RUN = "run"
    PAUSE = "pause"
    CANCEL = "cancel"


class Outcome(StrEnum):
    """How an attempt ended; None in the database while it has not."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    PAUSED = "paused"
    LOST = "lost"
    """Its host or supervisor went away, or its lease ran out."""
    PREEMPTED = "preempted"
    """The service stopped it, for a more urgent job or because its host is drained; it is queued again."""


class StopOrder(StrEnum):
    """Why the service itself has an attempt stop. Written to the attempt, read by its supervisors."""

    PREEMPTED = "preempted"
    """A job of higher priority gets its devices: it saves first."""
    DRAINED = "drained"
    """Its host is drained, and is to be empty: it saves first."""
    PEER_ENDED = "peer_ended"
    """Another of its placements has ended: no rank can go on without those."""
