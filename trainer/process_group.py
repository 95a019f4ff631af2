"""The process group: this rank's device, its peers, and the collectives that training needs."""

import os
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from threading import Thread
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist
from torch import nn

from trainer.environment import MASTER_FD_VARIABLE, RankEnvironment
from trainer.errors import DeviceError, MissingDeviceError
from trainer.roll_call import Deadline, PeersMissingError, awaited, call_roll, patience_s
from trainer.run_dir import RunConfig

if TYPE_CHECKING:
    from torch._C._distributed_c10d import Store


_ENDED = "rank_0/ended"
"""Set once rank 0 has ended by an error."""
_PART = 2**20
"""Characters, of four bytes at most, that are put into the store at once: torch's takes no value above 8 MiB."""
_ALIVE_EVERY_S = 0.5
_ANSWERS_WITHIN_S = 2.0
"""What is added to torch's own deadline for reaching node 0: it is to tell, if it can."""


def connect(
    environment: RankEnvironment,
    config: RunConfig,
    *,
    tell: Callable[[int], None] = lambda _present: None,
    alive: Callable[[], None] = lambda: None,
) -> "Store | None":
    """Return the store of our launcher's ranks, once all are there, or None where there is one rank only.

    While it waits for the others, rank 0 calls `tell` again and again with the number of ranks that have come, and any
    other rank calls `alive`.

    The launcher hands rank 0 a listening socket, so that no other run can take the port. Raises ConfigError where the
    ranks do not run the same, and PeersMissingError after `timeout_s`.
    """
    if environment.world_size == 1:
        return None
    timeout_s = config.train.timeout_s
    store = meet(environment, os.environ.pop(MASTER_FD_VARIABLE, ""), timedelta(seconds=timeout_s), alive=alive)
    objection = missing_device(environment, config)
    call_roll(store, environment, config, timeout_s=timeout_s, objection=objection, tell=tell, alive=alive)
    return store


def missing_device(environment: RankEnvironment, config: RunConfig) -> DeviceError | None:
    """Return that this rank's device is missing, if so: to be said before the others wait for it."""
    try:
        local_device(config.devices[environment.local_rank], simulated=config.simulated)
    except DeviceError as error:
        return error
    return None


def meet(
    environment: RankEnvironment, inherited: str, timeout: timedelta, *, alive: Callable[[], None] = lambda: None
) -> "Store":
    """Return the store of our launcher's ranks; rank 0 has inherited the listening socket to serve it on.

    `alive` is called again and again while node 0 is not to be reached yet.

    Raises PeersMissingError where node 0 does not answer within `timeout`.
    """

    def open_store() -> "Store":
        store: Store = dist.TCPStore(  # type: ignore[attr-defined]  # exported where torch has distributed
            environment.master_addr,
            environment.master_port,
            environment.world_size,
            is_master=environment.rank == 0,
            timeout=timeout,
            wait_for_workers=False,  # the roll call does, and hears of a rank that refuses
            master_listen_fd=int(inherited) if inherited else None,
        )
        return store

    where = f"{environment.master_addr} port {environment.master_port}"
    within = f"within {timeout.total_seconds():g} s (timeout_s)"
    try:
        return answered(open_store, timeout_s=timeout.total_seconds(), alive=alive)
    except dist.DistError as error:
        raise PeersMissingError(
            f"node 0 was not to be reached at {where} {within}: is it started, and does nothing block the port?"
        ) from error
    except TimeoutError as error:
        raise PeersMissingError(
            f"what listens at {where} has not answered as node 0 does {within}: is it another program? Start node 0 "
            "first, with a master_port that is free there"
        ) from error


def answered(
    open_store: "Callable[[], Store]", *, timeout_s: float, alive: Callable[[], None] = lambda: None
) -> "Store":
    """Return the store, or raise what `open_store` does, to which torch's own deadline is `timeout_s`.

    Raises TimeoutError a little later where that deadline does not hold: once something has accepted the connection,
    torch waits for its answer for ever.
    """
    opened: Future[Store] = Future()

    def run() -> None:
        try:
            opened.set_result(open_store())
        except Exception as error:  # noqa: BLE001  (whatever it raises is raised by the waiting thread)
            opened.set_exception(error)

    Thread(target=run, name="meeting", daemon=True).start()  # no executor: at exit, Python would wait for its threads
    deadline = time.monotonic() + timeout_s + _ANSWERS_WITHIN_S
    while not wait([opened], timeout=min(_ALIVE_EVERY_S, timeout_s)).done:
        if time.monotonic() > deadline:
            raise TimeoutError("what listens there does not answer")
        alive()
    return opened.result()


@dataclass(frozen=True)
class ProcessGroup:
    """One rank's view of all ranks of a run."""

    environment: RankEnvironment
    device: torch.device
    store: "Store | None"
    alive: Callable[[], None] = lambda: None
    """To be called at least once for each batch, or what takes as long: says that this rank is at work."""

    @classmethod
    def join(
        cls,
        environment: RankEnvironment,
        store: "Store | None",
        *,
        device: str,
        simulated: bool,
        timeout_s: float,
        alive: Callable[[], None] = lambda: None,
    ) -> "ProcessGroup":
        """Join the other ranks: NCCL on CUDA, Gloo on anything else. Raises DeviceError for a missing device."""
        torch_device = local_device(device, simulated=simulated)
        if torch_device.type == "cuda":
            torch.cuda.set_device(torch_device)
        if store is not None:
            nccl = torch_device.type == "cuda" and dist.is_nccl_available()
            dist.init_process_group(
                "nccl" if nccl else "gloo",
                store=store,
                rank=environment.rank,
                world_size=environment.world_size,
                timeout=timedelta(seconds=timeout_s),
                device_id=torch_device if nccl else None,
            )
        return cls(environment, torch_device, store, alive)

    @classmethod
    def alone(cls, device: torch.device) -> "ProcessGroup":
        """Return the group of a process that is no rank of a run."""
        return cls(RankEnvironment(rank=0, local_rank=0, world_size=1, local_world_size=1), device, None)

    @property
    def rank(self) -> int:
        return self.environment.rank

    @property
    def world_size(self) -> int:
        return self.environment.world_size

    @property
    def is_one_node(self) -> bool:
        """Whether all ranks of the run are on this host."""
        return self.world_size == self.environment.local_world_size

    def share(self, name: str, value: str) -> str:
        """Return rank 0's `value` on every rank."""
        return shared(self.store, name, value, rank=self.rank, alive=self.alive)

    def share_on_node(self, name: str, value: str) -> str:
        """Return the `value` of each node's first rank on every rank of that node."""
        if self.store is None:
            return value
        key = f"{name}/node/{self.environment.node_rank}"
        local_rank = self.environment.local_rank
        if local_rank == 0:
            self.store.set(key, value)
        return _awaited(self.store, key, deadline=_deadline(self.store), rank=self.rank - local_rank, alive=self.alive)

    def exchange(self, name: str, value: str) -> list[str]:
        """Return the `value` of every rank, in the order of the ranks, on each of them."""
        if self.store is None:
            return [value]
        parts = [value[begin : begin + _PART] for begin in range(0, len(value), _PART)]
        for number, part in enumerate(parts):
            self.store.set(f"{name}/rank/{self.rank}/{number}", part)
        self.store.set(f"{name}/rank/{self.rank}", str(len(parts)))  # last: whoever sees it finds all of them
        deadline = _deadline(self.store)  # for all of them, as a collective has
        return [self._exchanged(f"{name}/rank/{rank}", deadline, rank=rank) for rank in range(self.world_size)]

    def _exchanged(self, key: str, deadline: Deadline, *, rank: int) -> str:
        assert self.store is not None
        parts = int(_awaited(self.store, key, deadline=deadline, rank=rank, alive=self.alive))
        return "".join(self.store.get(f"{key}/{number}").decode() for number in range(parts))

    def sum(self, values: torch.Tensor) -> torch.Tensor:
        """Add the values of all ranks up, in place, and return them."""
        if self.store is not None:
            dist.all_reduce(values)
        return values

    def align_buffers(self, model: nn.Module) -> None:
        """Give every rank rank 0's buffers (BatchNorm's statistics), as DDP does before each training forward."""
        if self.store is not None:
            for buffer in model.buffers():
                dist.broadcast(buffer, src=0)

    def wait_for_all(self) -> None:
        """Return when every rank has got here."""
        if self.store is not None:
            dist.barrier()

    def leave(self) -> None:
        """Tear the group down; nothing may be owed to another rank any more."""
        if self.store is not None:
            dist.destroy_process_group()


def shared(store: "Store | None", name: str, value: str, *, rank: int, alive: Callable[[], None] = lambda: None) -> str:
    """Return rank 0's `value` on every rank that shares the store. `alive` is called again and again meanwhile.

    Raises PeersMissingError where rank 0 ends before it has one, or says nothing for as long as a collective may take.
    """
    if store is None:
        return value
    if rank == 0:
        store.set(name, value)
        return value
    return _awaited(store, name, deadline=_deadline(store), alive=alive)


def _awaited(
    store: "Store", key: str, *, deadline: Deadline, rank: int = 0, alive: Callable[[], None] = lambda: None
) -> str:
    """Return what `rank` writes; it may be long at work on it, and this one is alive meanwhile."""

    def look() -> None:
        if store.check([_ENDED]):
            raise PeersMissingError("rank 0 has ended by an error, and says itself by which")
        alive()

    return awaited(store, key, deadline=deadline, rank=rank, alive=look)


def _deadline(store: "Store") -> Deadline:
    """Return the end of a wait that begins now and may last as long as the store's own."""
    return Deadline(patience_s(store))


def tell_end(store: "Store | None", *, rank: int) -> None:
    """Let nobody wait for word of a rank that has ended by an error, though its process may live on."""
    if store is not None and rank == 0:
        with suppress(dist.DistError):  # with the store gone, they are told so
            store.set(_ENDED, "")


def local_device(device: str, *, simulated: bool) -> torch.device:
    """Return the torch device of a rank. Raises DeviceError where this host does not have it."""
    if simulated or device == "cpu":
        return torch.device("cpu")
    if device == "mps":
        if not torch.backends.mps.is_available():
            raise MissingDeviceError("device: 'mps' is not available on this host")
        return torch.device("mps")
    index = int(device.removeprefix("cuda:"))
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if index >= count:
        names = "cuda:0" if count == 1 else f"cuda:0 to cuda:{count - 1}"
        has = f"it has {names}" if count else "it has no CUDA device that torch can use"
        raise MissingDeviceError(f"device: {device!r} is not on this host; {has}")
    return torch.device("cuda", index)


def device_label(device: str, *, simulated: bool) -> str:
    """Name a device for people."""
    return f"{device} (simulated)" if simulated and device.startswith("cuda") else device
