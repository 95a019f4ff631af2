"""The meeting: ranks that torchrun has started find one another and their run directory, or all hear why not."""

import itertools
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import torch.distributed as dist
from torch.distributed.rendezvous import rendezvous

from trainer.environment import RankEnvironment
from trainer.error_report import ErrorReport
from trainer.errors import ConfigError, TrainingError
from trainer.local_run import new_run_dir
from trainer.process_group import answered, missing_device, shared
from trainer.roll_call import Deadline, PeersMissingError, agree, call_roll
from trainer.run_dir import RunConfig, RunDir
from trainer.terminal import say
from trainer.train_file import TrainFile

if TYPE_CHECKING:
    from torch._C._distributed_c10d import Store

_runs = itertools.count()
"""How many runs this process has taken part in: one store of torchrun's serves them all."""


@dataclass(frozen=True)
class Meeting:
    """What a rank has once it has met the others."""

    config: RunConfig
    store: "Store | None"
    run_dir: RunDir
    is_complete: bool
    """The run was complete before torchrun started all ranks anew: nothing is left to do."""


def meet(
    file: TrainFile, environment: RankEnvironment, *, output: Path | None, has_call: bool, on_shared_folder: bool
) -> Meeting:
    """Meet the other ranks. Rank 0 makes the run directory; the others learn of it through torchrun's store.

    With `on_shared_folder` each rank has to see what rank 0 has made. Whatever keeps one of them is raised on each: as
    it is on the rank that it befell, and as ConfigError on the others; PeersMissingError where some have not come
    within `timeout_s`.
    """
    timeout_s = file.train.timeout_s
    torchruns, number = _store_of_torchrun(environment, timeout_s), next(_runs)
    store: Store | None = None
    config: RunConfig | None = None
    objection: ConfigError | None = None
    try:
        config = file.run_config_under_torchrun(environment).model_copy(update={"call": has_call})
        objection = missing_device(environment, config)
    except ConfigError as error:
        objection = error
    if torchruns is not None and environment.world_size > 1:
        # Torchrun's store outlives the ranks that it starts anew: without the count, they would read the word of those.
        prefix = f"rankzero/{environment.run_id}/{environment.restart_count}/{number}"
        store = dist.PrefixStore(prefix, torchruns)  # type: ignore[attr-defined]  # as TCPStore is
        call_roll(store, environment, config, timeout_s=timeout_s, objection=objection)
    elif objection is not None:
        raise objection
    assert config is not None, "without one there is an objection"
    _say_what_yields(file, config, environment)
    memory = _Memory(torchruns, f"rankzero/{environment.run_id}/run_dir/{number}")
    return _gather(environment, config, store, memory, output=output, on_shared_folder=on_shared_folder)


def _store_of_torchrun(environment: RankEnvironment, timeout_s: float) -> "Store | None":
    """Return the store at the address that the environment names, or None for a rank that is alone without torchrun."""
    if environment.world_size == 1 and not environment.run_id:
        return None
    timeout = timedelta(seconds=timeout_s)
    try:
        store = answered(
            lambda: next(rendezvous("env://", environment.rank, environment.world_size, timeout=timeout))[0],
            timeout_s=timeout_s,
        )
    except (dist.DistError, TimeoutError) as error:
        raise PeersMissingError(
            f"torchrun's store was not to be reached at {environment.master_addr} port {environment.master_port} "
            f"within {timeout_s:g} s (timeout_s): {error}"
        ) from error
    store.set_timeout(timeout)
    return store


def _say_what_yields(file: TrainFile, config: RunConfig, environment: RankEnvironment) -> None:
    devices = ",".join(config.devices)
    if environment.local_rank == 0 and file.device not in ("auto", "cpu", devices):
        say(
            f"device: {file.device} yields to torchrun, which has started {environment.local_world_size} ranks on this "
            f"host: they train on {devices}"
        )
    if environment.local_rank == 0 and file.hang_limit_s is not None:
        say("hang_limit_s: without effect under torchrun: whoever starts the ranks watches them")


@dataclass(frozen=True)
class _Memory:
    """Where the ranks find the run directory of those that torchrun has started before them."""

    store: "Store | None"
    key: str

    def recall(self) -> Path | None:
        if self.store is None or not self.store.check([self.key]):
            return None
        return Path(self.store.get(self.key).decode())

    def keep(self, path: Path) -> None:
        if self.store is not None:
            self.store.set(self.key, str(path))


def _gather(
    environment: RankEnvironment,
    config: RunConfig,
    store: "Store | None",
    memory: _Memory,
    *,
    output: Path | None,
    on_shared_folder: bool,
) -> Meeting:
    """Have rank 0 make the run directory, and all others see it."""
    made: _Made | None = None
    objection: Exception | None = None
    if environment.rank == 0:
        try:
            made = _make_run_dir(environment, config, memory, output)
        except (TrainingError, OSError, ValueError) as error:
            objection = error
    path = shared(store, "run_dir", str(made.run_dir.path) if made is not None else "", rank=environment.rank)
    run_dir = RunDir(Path(path))
    if path:
        objection = _find(run_dir, environment, on_shared_folder=on_shared_folder)
    is_complete = shared(store, "is_complete", str(made is not None and made.is_complete), rank=environment.rank)
    try:
        agree(store, environment, "run_dir", objection=objection, deadline=Deadline(config.train.timeout_s))
    except Exception as error:
        if made is not None:
            made.give_up(error)
        raise
    return Meeting(config, store, run_dir, is_complete == str(True))


@dataclass(frozen=True)
class _Made:
    """The run directory as rank 0 has made it, or found it."""

    run_dir: RunDir
    is_new: bool
    is_complete: bool = False

    def give_up(self, error: Exception) -> None:
        """Leave word of peers that are missing; where the run was refused, let its folder be used for the next try."""
        with suppress(OSError):
            if isinstance(error, PeersMissingError):
                ErrorReport.of(error, cause=error.cause, rank=None, traceback=None).write(self.run_dir.error)
            elif self.is_new:
                self.run_dir.config.unlink()


def _make_run_dir(environment: RankEnvironment, config: RunConfig, memory: _Memory, output: Path | None) -> _Made:
    """Make the run directory, or take that of the ranks which torchrun has started before: as rank 0."""
    earlier = RunDir(path) if environment.restart_count and (path := memory.recall()) else None
    if earlier is not None and _is_of_this_run(earlier, config, output):
        is_complete = earlier.completed() is not None
        if not is_complete:
            earlier.create(config)  # torchrun may have started another number of ranks
            earlier.error.unlink(missing_ok=True)
        say(f"run directory: {earlier.path}, which restart {environment.restart_count} continues")
        return _Made(earlier, is_new=False, is_complete=is_complete)
    run_dir = RunDir(new_run_dir(output).resolve())
    run_dir.create(config)
    memory.keep(run_dir.path)
    say(f"run directory: {run_dir.path}")
    return _Made(run_dir, is_new=True)


def _is_of_this_run(earlier: RunDir, config: RunConfig, output: Path | None) -> bool:
    if not earlier.config.exists() or (output is not None and output.resolve() != earlier.path):
        return False
    before = earlier.read_config()
    return (before.train, before.call) == (config.train, config.call)


def _find(run_dir: RunDir, environment: RankEnvironment, *, on_shared_folder: bool) -> Exception | None:
    """Return what keeps this rank from writing beside rank 0, if anything does."""
    if on_shared_folder and not run_dir.config.exists():
        return ConfigError(
            f"output: rank 0's run directory, {run_dir.path}, is not to be seen on this host; train() under torchrun "
            "needs one on a file system that all hosts share"
        )
    try:
        run_dir.ranks.mkdir(parents=True, exist_ok=True)  # on another host, rank 0 has made nothing
        run_dir.rank_error(environment.local_rank).unlink(missing_ok=True)
    except OSError as error:
        return error
    return None
