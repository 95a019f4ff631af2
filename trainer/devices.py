"""The device grammar: what a user may write for `device`, the one canonical form of it, and what fits it.

Torch-free, because the API validates with it. What is accepted, each with its canonical form:

    0 · "0" · "cuda:0" · [0] · ["cuda:0"]           -> "cuda:0"
    [0, 1] · "0,1" · "cuda:0,cuda:1"                -> "cuda:0,cuda:1"   (order is rank order)
    "cpu" · "mps" · "auto"                          -> unchanged

Everything else is an error that names the offending token. Nothing is dropped, repeated or guessed.
"""

import re
from collections.abc import Sequence

from trainer.config import AUTO_BATCH, TrainConfig
from trainer.errors import ConfigError, DeviceError

MOST_PROCESSES = 1024
"""The most ranks of one node, and the most nodes of one run."""

_INDEX = re.compile(r"0|[1-9][0-9]{0,3}", re.ASCII)
_CUDA = re.compile(r"cuda:(0|[1-9][0-9]{0,3})", re.ASCII)
_SINGLE = ("cpu", "mps", "auto")
WAYS = 'write an index (0), a list ("0,1" or "cuda:0,cuda:1"), "cpu", "mps" or "auto"'
"""How a device list is written; errors about one that is none end with it."""


def parse_device(value: object) -> str:
    """Return the canonical form of a device list.

    Raises DeviceError, naming the offending token, for anything outside the grammar.
    """
    if isinstance(value, str):
        tokens: Sequence[object] = value.split(",")
    elif isinstance(value, (list, tuple)):
        tokens = value
    else:
        tokens = [value]
    if not tokens:
        raise DeviceError(f"device: the list is empty; {WAYS}")
    if isinstance(value, str) and value.strip() in _SINGLE:
        return value.strip()
    indices = [_index_of(token, in_list=isinstance(value, (list, tuple)), whole=value) for token in tokens]
    _refuse_mixed_spelling(tokens, value)
    seen: set[int] = set()
    for token, index in zip(tokens, indices, strict=True):
        if index in seen:
            raise DeviceError(f"device: {_shown(token)} is listed twice in {_shown(value)}")
        seen.add(index)
    return ",".join(f"cuda:{index}" for index in indices)


def rank_devices(device: str, *, nproc_per_node: int | None = None) -> tuple[str, ...]:
    """Return the device of each local rank, in rank order, of a canonical device list.

    `nproc_per_node` starts that many ranks on "cpu"; for CUDA it may only repeat the length of the list.
    "auto" has to be resolved first: raises DeviceError for it, and for a count that does not fit.
    """
    if nproc_per_node is not None and nproc_per_node < 1:
        raise DeviceError(f"nproc_per_node: {nproc_per_node} is not a number of processes; write 1 or more")
    if device == "auto":
        raise DeviceError('device: "auto" names no device yet; it is resolved on the host that runs')
    if device == "cpu":
        return ("cpu",) * (nproc_per_node or 1)
    devices = tuple(device.split(","))
    if nproc_per_node is not None and nproc_per_node != len(devices):
        raise DeviceError(
            f"nproc_per_node: {nproc_per_node} processes do not fit device={device!r}, which starts "
            f"{len(devices)}; leave nproc_per_node out (it is for device='cpu')"
        )
    return devices


def check_strategy(strategy: str, devices: Sequence[str], *, nnodes: int = 1) -> None:
    """Raise ConfigError, saying what to use instead, where devices cannot share the work by this strategy.

    `devices` are those of one node.
    """
    if strategy not in ("dp", "single"):
        return
    if nnodes > 1:
        raise ConfigError(
            f"strategy: {strategy!r} is one process, and nnodes is {nnodes}; leave strategy out: ddp starts a process "
            "for each device of every node"
        )
    if strategy == "single" and len(devices) > 1:
        raise ConfigError(
            f"strategy: 'single' trains on one device, and there are {len(devices)}; name one, or leave strategy out: "
            "ddp starts a process for each"
        )
    if strategy == "dp" and devices[0] == "cpu" and len(devices) > 1:
        raise ConfigError(
            f"strategy: 'dp' splits batches among CUDA devices in one process, and nproc_per_node asks for "
            f"{len(devices)} on the CPU; leave strategy out: ddp starts them"
        )
    if strategy == "dp" and devices[0] == "mps":
        raise ConfigError(
            "strategy: 'dp' splits batches among CUDA devices, and device 'mps' is none; leave strategy out"
        )


def rank_count(strategy: str, device_count: int) -> int:
    """Return how many ranks train on this many devices: one on each, but for "dp", whose one rank has them all."""
    return 1 if strategy == "dp" else device_count


def check_batch(train: TrainConfig, devices: Sequence[str], *, nnodes: int = 1) -> None:
    """Raise ConfigError for a global batch that does not divide among the devices, or a limit that is below them.

    `devices` are those of one node.
    """
    takers, among = nnodes * len(devices), "devices" if train.strategy == "dp" else "ranks"
    if train.batch == AUTO_BATCH:
        check_nominal_batch(train.nbs, takers, among=among)
    else:
        per_rank_batch(train.batch, takers, among=among)


def per_rank_batch(batch: int, world_size: int, *, among: str = "ranks") -> int:
    """Return the number of samples each rank takes of a global batch of `batch` samples.

    Raises DeviceError, offering the nearest two batches that do divide, where `batch` does not. It calls the takers
    `among`.
    """
    if batch % world_size == 0:
        return batch // world_size
    below = batch // world_size * world_size
    above = below + world_size
    offer = f"{below} or {above}" if below else f"{above} or {above + world_size}"
    raise DeviceError(f"batch: {batch} samples do not divide among {world_size} {among}; the nearest that do: {offer}")


def check_nominal_batch(nbs: int | None, world_size: int, *, among: str = "ranks") -> None:
    """Raise ConfigError where `nbs`, as the largest batch that may be found, has no sample for each of the takers."""
    if nbs is not None and nbs < world_size:
        raise ConfigError(
            f"nbs: with batch -1 it is the largest batch, and {nbs} {'sample' if nbs == 1 else 'samples'} do not go "
            f"round {world_size} {among}; the least for them is {world_size}"
        )


def continued_batch(batch: int, world_size: int, *, among: str = "ranks") -> int:
    """Return the global batch that a continued run has from its checkpoint, which no other can replace.

    Raises DeviceError, offering the nearest numbers of takers that do divide it, where `world_size` does not.
    """
    if batch % world_size == 0:
        return batch
    fitting = [count for count in range(1, batch + 1) if batch % count == 0]
    offers = [*[count for count in fitting if count < world_size][-1:], *[n for n in fitting if n > world_size][:1]]
    raise DeviceError(
        f"batch: -1 continues with the checkpoint's {batch} samples, which do not divide among {world_size} {among}; "
        f"continue on {' or '.join(map(str, offers))}, or begin anew without the checkpoint"
    )


def _index_of(token: object, *, in_list: bool, whole: object) -> int:
    if isinstance(token, bool):
        raise DeviceError(f"device: {_shown(token)} is a truth value, not a device; {WAYS}")
    if isinstance(token, int):
        if 0 <= token <= 9999:
            return token
        raise DeviceError(f"device: {_shown(token)} is not a device index; {WAYS}")
    if not isinstance(token, str):
        raise DeviceError(f"device: {_shown(token)} is not a device; {WAYS}")
    stripped = token.strip()
    if match := _CUDA.fullmatch(stripped):
        return int(match.group(1))
    if _INDEX.fullmatch(stripped) and not in_list:
        return int(stripped)
    if stripped in _SINGLE:
        raise DeviceError(f"device: {_shown(token)} stands alone, not in a list like {_shown(whole)}")
    if not stripped:
        raise DeviceError(f"device: empty token {_shown(token)} in {_shown(whole)}; {WAYS}")
    raise DeviceError(f"device: {_shown(token)} in {_shown(whole)} is not a device; {WAYS}")


def _refuse_mixed_spelling(tokens: Sequence[object], whole: object) -> None:
    """Refuse "cuda:0,1": one system reads it as device 1 alone, another as both; we do not guess."""
    named = [isinstance(token, str) and "cuda" in token for token in tokens]
    if any(named) and not all(named):
        odd = next(token for token, is_named in zip(tokens, named, strict=True) if not is_named)
        raise DeviceError(
            f"device: {_shown(odd)} in {_shown(whole)} mixes two spellings; write cuda:N for each or for none"
        )


def _shown(token: object) -> str:
    """The token as the user wrote it, cut where somebody sent a book."""
    text = repr(token)
    return text if len(text) <= 80 else text[:77] + "..."
