"""The hang watch: sees by the ranks' progress files that a run stands still. Never imports torch."""

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from trainer.config import SCRIPT
from trainer.run_dir import Progress, RunConfig, RunDir, quiet_limit_s

_BY_ITSELF = ("evaluating", "saving")
"""What a rank does with no word from the others: how far those are is no excuse."""
_ENDED = ("finished", "stopped")
_EVERY_S = 0.5
_LONGEST_LOOK_S = 5.0
"""What counts at most of the time between two looks: this process may have been stopped, and the ranks with it."""
_OTHER_NODES_S = 15.0
"""How long a node whose ranks wait for other nodes' leaves it to those to say which rank hangs."""


@dataclass(frozen=True)
class Standstill:
    """A rank that has not gone on for so long that it may be why the run stands still."""

    local_rank: int
    phase: str
    step: int
    """Optimizer steps that it has taken, as far as it has said."""
    seconds: float
    """Without progress."""
    limit_s: float
    """That it may be without progress in its phase."""


@dataclass
class _Rank:
    reached: Progress | None
    since: float
    """On the watch's own clock."""


class HangWatch:
    """Watches the ranks of one node. Where there is no limit, it sees nothing."""

    def __init__(self, run_dir: RunDir, config: RunConfig, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._run_dir, self._limit_s, self._clock = run_dir, config.hang_limit_s, clock
        self._is_script = config.train.recipe == SCRIPT
        self._looked_at = clock()
        self._now = 0.0
        """Seconds on a clock that stands still while this process does."""
        self._ranks = {rank: _Rank(None, self._now) for rank in range(config.local_world_size)}
        self._left_to_others_until: float | None = None

    def look(self, ended: Collection[int] = ()) -> list[Standstill]:
        """Return the ranks that may be why the run stands still, or nothing while it does not.

        To be called often; it looks twice a second. `ended` are the ranks whose processes have.
        """
        if self._limit_s is None or self._clock() - self._looked_at < _EVERY_S:
            return []
        self._tick()
        for local_rank, rank in self._ranks.items():
            reached = self._run_dir.read_progress(local_rank)
            if reached is not None and reached != rank.reached:
                self._ranks[local_rank] = _Rank(reached, self._now)
                self._left_to_others_until = None
        there = [
            self._standstill(local_rank, rank)
            for local_rank, rank in self._ranks.items()
            if local_rank not in ended and not (rank.reached is not None and rank.reached.phase in _ENDED)
        ]
        if self._left_to_others_until is not None and self._now < self._left_to_others_until:
            return []
        overdue = [each for each in there if each.seconds > each.limit_s]
        if self._is_script:  # its progress is what it reports, which is rank 0's to do: the others' files say nothing
            reported = next((each for each in overdue if each.local_rank == 0), None)
            return [replace(reported, local_rank=each.local_rank) for each in there] if reported is not None else []
        if all(self._waits(each, there) for each in overdue):
            return []
        return [each for each in there if each.seconds > self._batch_limit_s(each) / 2]

    def leave_to_others(self) -> bool:
        """See nothing for a while, if it was not so before: whether ranks of other nodes are still to tell."""
        if self._left_to_others_until is not None:
            return False
        self._left_to_others_until = self._now + _OTHER_NODES_S
        return True

    def _tick(self) -> None:
        looked_at = self._clock()
        self._now += min(looked_at - self._looked_at, _LONGEST_LOOK_S)
        self._looked_at = looked_at

    def _standstill(self, local_rank: int, rank: _Rank) -> Standstill:
        phase = rank.reached.phase if rank.reached is not None else "starting"
        assert self._limit_s is not None
        return Standstill(
            local_rank=local_rank,
            phase=phase,
            step=rank.reached.step if rank.reached is not None else 0,
            seconds=self._now - rank.since,
            limit_s=quiet_limit_s(rank.reached, self._limit_s),
        )

    def _waits(self, rank: Standstill, there: Collection[Standstill]) -> bool:
        """Whether the rank may stand still because another one, which is not ahead of it, is still at work."""
        if rank.phase in _BY_ITSELF:
            return False
        return any(
            other.step <= rank.step and other.seconds <= self._batch_limit_s(other) for other in there if other != rank
        )

    def _batch_limit_s(self, rank: Standstill) -> float:
        """What others have to bear of a rank: one that waits for them, itself, is to be there for the next batch."""
        assert self._limit_s is not None
        return self._limit_s if rank.phase == "waiting" else rank.limit_s
