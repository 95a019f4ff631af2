"""The roll call: before they join, all ranks of a run are there and agree on what they run."""

import json
import time
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch.distributed as dist

from trainer.environment import RankEnvironment
from trainer.errors import Cause, ConfigError, TrainingError
from trainer.run_dir import RunConfig

if TYPE_CHECKING:
    from torch._C._distributed_c10d import Store

_RUN = "roll_call/run"
"""What rank 0 runs, for the others to compare; nothing where it cannot run."""
_POLL_S = 0.02
_READ_WITHIN_S = 5.0
"""How long rank 0, whose store it may be, stays to have its verdict read."""


class PeersMissingError(TrainingError):
    """Not all ranks of the run have come in time, or rank 0 has gone."""

    cause = Cause.COMMUNICATION


class Deadline:
    """The end of a wait, handed down to each of its parts: several that count for themselves add up."""

    def __init__(self, within_s: float) -> None:
        self.within_s = within_s
        self._at = time.monotonic() + within_s

    @property
    def is_over(self) -> bool:
        return time.monotonic() > self._at


def call_roll(
    store: "Store",
    environment: RankEnvironment,
    config: RunConfig | None,
    *,
    timeout_s: float,
    objection: Exception | None = None,
    tell: Callable[[int], None] = lambda _present: None,
    alive: Callable[[], None] = lambda: None,
) -> None:
    """Return once all ranks of the run are there and run the same.

    Without it, a node that was started with another train.yaml would train along, each step the mean of two different
    runs; and one with another number of ranks, or that lacks a device, would have all the others wait for peers that
    never come. `objection` says why this rank cannot take part, if so; `config` may be None then.
    `tell` is called on rank 0 while it waits, with the number of ranks that have come, and `alive` on any other.

    Raises, on every rank, what is wrong: the objection, or ConfigError that names the field, and PeersMissingError
    after `timeout_s`.
    """
    deadline = Deadline(timeout_s)
    ours = _card(config) if config is not None else None
    if environment.rank == 0:
        store.set(_RUN, json.dumps(ours))
    if ours is not None and objection is None:
        theirs = ours if environment.rank == 0 else json.loads(awaited(store, _RUN, deadline=deadline, alive=alive))
        refusal = _difference(ours, theirs or ours) or _double(store, environment)
        objection = ConfigError(refusal) if refusal else None
    agree(store, environment, "roll_call", objection=objection, deadline=deadline, tell=tell, alive=alive)


def agree(
    store: "Store | None",
    environment: RankEnvironment,
    matter: str,
    *,
    objection: Exception | None,
    deadline: Deadline,
    tell: Callable[[int], None] = lambda _present: None,
    alive: Callable[[], None] = lambda: None,
) -> None:
    """Return once all ranks have come to `matter` with nothing to object; none waits for one that gives up there.

    `tell` is called on rank 0 while it waits, with the number of ranks that have come, and `alive` on any other.

    Raises the objection on the rank that has it, and ConfigError that says it on the others; PeersMissingError where
    not all have come by the deadline.
    """
    if store is None:
        if objection is not None:
            raise objection
        return
    keys = _Keys(matter)
    if objection is not None:
        store.set(keys.refusal, f"node {environment.node_rank} takes no part: {objection}")
        if environment.rank > 0:
            raise objection
    store.add(keys.present, 1)
    if environment.rank == 0:
        verdict = _decide(store, environment, keys, deadline, tell)
    else:
        verdict = awaited(store, keys.verdict, deadline=deadline, alive=alive)
    if verdict:
        _let_it_be_read(store, environment, keys)
        raise objection or ConfigError(verdict)


def awaited(
    store: "Store", key: str, *, deadline: Deadline, rank: int = 0, alive: Callable[[], None] = lambda: None
) -> str:
    """Return what a rank has written, or will. Raises PeersMissingError where it does not by the deadline.

    `alive` is called again and again meanwhile.
    """
    try:
        while not store.check([key]):  # `get` would wait by itself, for all of the store's own timeout
            if deadline.is_over:
                raise PeersMissingError(f"no word of rank {rank} within {deadline.within_s:g} s (timeout_s)")
            alive()
            time.sleep(_POLL_S)
        value: bytes = store.get(key)
    except dist.DistError as error:
        raise PeersMissingError(
            f"no word of rank {rank}: rank 0 is gone, and the store of all ranks with it ({error})"
        ) from error
    return value.decode()


def patience_s(store: "Store") -> float:
    """How long a store waits for a key."""
    timeout: timedelta = store.timeout  # type: ignore[attr-defined]  # torch's stub lacks it
    return timeout.total_seconds()


class _Keys:
    """Where the ranks of a run leave word about one matter."""

    def __init__(self, matter: str) -> None:
        self.present = f"{matter}/present"
        """How many ranks have come to it."""
        self.refusal = f"{matter}/refusal"
        """Why a rank takes no part: the last one that says so."""
        self.verdict = f"{matter}/verdict"
        """Rank 0's word to all: empty, or why the run does not go on."""
        self.read = f"{matter}/read"
        """How many ranks have read it."""


def _card(config: RunConfig) -> dict[str, Any]:
    """What has to be the same on every rank, by the name of its field."""
    return {
        "nnodes": config.nnodes,
        "nproc_per_node": config.local_world_size,
        "device": config.devices[0].partition(":")[0],
        "simulated": config.simulated,
        "max_steps": config.max_steps,
        **config.train.model_dump(mode="json"),
    }


def _difference(ours: dict[str, Any], theirs: dict[str, Any]) -> str:
    """Say what differs on this node, or nothing."""
    names = [name for name in ours if ours[name] != theirs.get(name)]
    if not names:
        return ""
    values = "; ".join(f"{name} is {ours[name]!r} here, and {theirs.get(name)!r} on node 0" for name in names)
    if names[0] == "nproc_per_node":
        return f"{values}: every node takes part with as many devices, one rank on each"
    return f"{values}: every node has to be started with the same train.yaml and flags, but for node_rank"


def _double(store: "Store", environment: RankEnvironment) -> str:
    """Say that another process has this rank's place, or nothing."""
    if store.add(f"roll_call/rank/{environment.rank}", 1) == 1:
        return ""
    return (
        f"node_rank: rank {environment.rank} has come already; give each node a node_rank of its own, and start all "
        "nodes anew where one has failed"
    )


def _decide(
    store: "Store", environment: RankEnvironment, keys: _Keys, deadline: Deadline, tell: Callable[[int], None]
) -> str:
    """Wait for all, and tell all whether the run goes on: as rank 0."""
    while not store.check([keys.refusal]):
        if (present := store.add(keys.present, 0)) >= environment.world_size:
            store.set(keys.verdict, "")
            return ""
        if deadline.is_over:
            raise PeersMissingError(
                f"only {present} of {environment.world_size} ranks have come within {deadline.within_s:g} s "
                f"(timeout_s): are all {environment.world_size // environment.local_world_size} nodes started, and "
                f"does each reach port {environment.master_port} of node 0?"
            )
        tell(present)
        time.sleep(_POLL_S)
    verdict: str = store.get(keys.refusal).decode()
    store.set(keys.verdict, verdict)
    return verdict


def _let_it_be_read(store: "Store", environment: RankEnvironment, keys: _Keys) -> None:
    """As rank 0, stay until the others have read a verdict, for they may get it from this process."""
    if environment.rank != 0:
        store.add(keys.read, 1)
        return
    others = store.add(keys.present, 0) - 1
    deadline = Deadline(_READ_WITHIN_S)
    while store.add(keys.read, 0) < others and not deadline.is_over:
        time.sleep(_POLL_S)
