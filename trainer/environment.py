"""The environment of one rank: torchrun's own variables, read and written in one place."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from trainer.errors import ConfigError

MASTER_FD_VARIABLE = "RANKZERO_MASTER_FD"
"""Set by our own launcher only: the listening socket on which rank 0 serves the rendezvous; empty for the others."""


@dataclass(frozen=True)
class RankEnvironment:
    """Who a rank is among all ranks, in torchrun's words."""

    rank: int
    local_rank: int
    world_size: int
    local_world_size: int
    node_rank: int = 0
    master_addr: str = "127.0.0.1"
    master_port: int = 0
    is_spawned: bool = False
    """Our own launcher started this rank, not torchrun."""
    run_id: str = ""
    """What torchrun calls the run; empty where it has not started this rank."""
    restart_count: int = 0
    """How often torchrun has started all ranks anew (`--max-restarts`)."""

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> "RankEnvironment":
        """Read what torchrun or our own launcher has set. Raises ConfigError naming the variable that is unusable."""
        rank, world_size = _integer(environ, "RANK"), _integer(environ, "WORLD_SIZE")
        return cls(
            rank=rank,
            local_rank=_integer(environ, "LOCAL_RANK", rank),
            world_size=world_size,
            local_world_size=_integer(environ, "LOCAL_WORLD_SIZE", world_size),
            node_rank=_integer(environ, "GROUP_RANK", _integer(environ, "NODE_RANK", 0)),
            master_addr=environ.get("MASTER_ADDR", "127.0.0.1"),
            master_port=_integer(environ, "MASTER_PORT", 0),
            is_spawned=MASTER_FD_VARIABLE in environ,
            run_id=environ.get("TORCHELASTIC_RUN_ID", ""),
            restart_count=_integer(environ, "TORCHELASTIC_RESTART_COUNT", 0),
        )

    def variables(self) -> dict[str, str]:
        """What to set for the rank, so that any torchrun-aware code in it finds its place."""
        return {
            "RANK": str(self.rank),
            "LOCAL_RANK": str(self.local_rank),
            "WORLD_SIZE": str(self.world_size),
            "LOCAL_WORLD_SIZE": str(self.local_world_size),
            "GROUP_RANK": str(self.node_rank),
            "NODE_RANK": str(self.node_rank),
            "MASTER_ADDR": self.master_addr,
            "MASTER_PORT": str(self.master_port),
        }


def is_rank(environ: Mapping[str, str]) -> bool:
    """Whether this process was started as a rank (by torchrun): then it spawns nothing."""
    return "RANK" in environ and "WORLD_SIZE" in environ


def machine_defaults(environ: Mapping[str, str], *, local_world_size: int, on_loopback: bool) -> dict[str, str]:
    """Return what is set for each rank where the user has set nothing himself.

    `on_loopback` says that all ranks of the run are on this host.
    """
    defaults = {
        # Every rank with a thread per core would fight for the cores; torchrun's answer, a single thread, idles them.
        "OMP_NUM_THREADS": str(max(1, _cores() // local_world_size)),
        "PYTHONUNBUFFERED": "1",  # what a rank printed before it was killed is what explains it
        "PYTHONFAULTHANDLER": "1",
    }
    if on_loopback:
        # Gloo otherwise resolves the host's own name, which fails on hosts (and in containers) with no entry for it.
        defaults["GLOO_SOCKET_IFNAME"] = "lo0" if sys.platform == "darwin" else "lo"
    return {name: value for name, value in defaults.items() if name not in environ}


def _cores() -> int:
    """Cores that this process may use, which a container limits."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _integer(environ: Mapping[str, str], name: str, default: int | None = None) -> int:
    text = environ.get(name)
    if text is None and default is not None:
        return default
    if text is None or not text.isdecimal():
        raise ConfigError(f"environment variable {name}: {text!r} is not a number of 0 or more")
    return int(text)
