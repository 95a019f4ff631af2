"""The roll call: before they join, all ranks of a run are there and agree on what they run."""

import json
import time
from typing import TYPE_CHECKING, Any

from trainer.environment import RankEnvironment
from trainer.errors import Cause, ConfigError, TrainingError
from trainer.run_dir import RunConfig

if TYPE_CHECKING:
    from torch._C._distributed_c10d import Store

_RUN = "roll_call/run"
"""What rank 0 runs, for the others to compare."""
_PRESENT = "roll_call/present"
"""How many ranks are there."""
_REFUSAL = "roll_call/refusal"
"""Why a rank takes no part: the last one that says so."""
_VERDICT = "roll_call/verdict"
"""Rank 0's word to all: empty, or why the run does not begin."""
_READ = "roll_call/read"
"""How many ranks have read it."""
_POLL_S = 0.02
_READ_WITHIN_S = 5.0
"""How long rank 0, whose store it is, stays to have its verdict read."""


class PeersMissingError(TrainingError):
    """Not all ranks of the run have come in time."""

    cause = Cause.COMMUNICATION


def call_roll(store: "Store", environment: RankEnvironment, config: RunConfig, *, objection: str = "") -> None:
    """Return once all ranks of the run are there and run the same.

    Without it, a node that was started with another train.yaml would train along, each step the mean of two different
    runs; and one with another number of ranks, or that lacks a device, would have all the others wait for peers that
    never come. `objection` says why this rank cannot take part, if so.

    Raises ConfigError, on every rank, that names what is wrong, and PeersMissingError after the configured `timeout_s`.
    """
    ours = _card(config)
    if environment.rank == 0:
        store.set(_RUN, json.dumps(ours))
    theirs = ours if environment.rank == 0 else json.loads(store.get(_RUN))
    refusal = objection or _difference(ours, theirs) or _double(store, environment)
    if refusal:
        store.set(_REFUSAL, f"node {environment.node_rank} takes no part: {refusal}")
    if refusal and environment.rank > 0:
        raise ConfigError(refusal)
    store.add(_PRESENT, 1)
    verdict = _decide(store, environment, config) if environment.rank == 0 else store.get(_VERDICT).decode()
    if verdict:
        _let_it_be_read(store, environment)
        raise ConfigError(refusal or verdict)


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


def _decide(store: "Store", environment: RankEnvironment, config: RunConfig) -> str:
    """Wait for all, and tell all whether the run begins: as rank 0."""
    deadline = time.monotonic() + config.train.timeout_s
    while not store.check([_REFUSAL]):
        if (present := store.add(_PRESENT, 0)) >= environment.world_size:
            store.set(_VERDICT, "")
            return ""
        if time.monotonic() > deadline:
            raise PeersMissingError(
                f"only {present} of {environment.world_size} ranks have come within {config.train.timeout_s:g} s "
                f"(timeout_s): are all {config.nnodes} nodes started, and does each reach port "
                f"{environment.master_port} of node 0?"
            )
        time.sleep(_POLL_S)
    verdict = store.get(_REFUSAL).decode()
    store.set(_VERDICT, verdict)
    return verdict


def _let_it_be_read(store: "Store", environment: RankEnvironment) -> None:
    """As rank 0, stay until the others have read a verdict, for they get it from this process."""
    if environment.rank != 0:
        store.add(_READ, 1)
        return
    others = store.add(_PRESENT, 0) - 1
    deadline = time.monotonic() + _READ_WITHIN_S
    while store.add(_READ, 0) < others and time.monotonic() < deadline:
        time.sleep(_POLL_S)
