"""The store server: what the ranks of a script meet at, served by rank 0 once the first of them comes."""

import os
import select
from threading import Thread
from typing import TYPE_CHECKING

from trainer.environment import RankEnvironment

if TYPE_CHECKING:
    from torch._C._distributed_c10d import Store

_served: list["Store"] = []
"""Kept: the store lives as long as the process of rank 0."""


def serve_on_demand(listener: int, environment: RankEnvironment) -> None:
    """Serve the store on a listening socket from its first client on.

    Torch is not imported before: a program without it never pays for it, and the client, be it this very process, has
    done so already. Until then the kernel keeps the connection waiting.
    """
    os.set_inheritable(listener, False)  # what the program starts must not keep the port open for longer than it lives
    Thread(target=_serve, args=(listener, environment), name="store-server", daemon=True).start()


def _serve(listener: int, environment: RankEnvironment) -> None:
    waiting = select.poll()
    waiting.register(listener, select.POLLIN)
    waiting.poll()
    import torch.distributed as dist

    _served.append(
        dist.TCPStore(  # type: ignore[attr-defined]  # exported where torch has distributed
            environment.master_addr,
            environment.master_port,
            environment.world_size,
            is_master=True,
            wait_for_workers=False,
            master_listen_fd=listener,
        )
    )
