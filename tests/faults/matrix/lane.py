"""A lane: a standing service in which one trial follows another, with the undisturbed runs to compare with."""

import json
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import select

from jobs.states import State
from jobs.store import maintenance
from jobs.tables import Placement
from tests import laws
from tests.api_server import ApiServer
from tests.faults.matrix.guest import Guest
from tests.faults.matrix.logs import Logs
from tests.faults.matrix.watch import Watch
from tests.servers import PostgresServer, ValkeyServer
from tests.service import DIGITS, PROGRAM_PACE_S, Service, program_train
from tests.waiting import wait_until

LEASE_S = 15
HEARTBEAT_S = 3
TICK_S = 2
"""Of hosts other than `alpha`, whose workers mostly stand by: each tick is paid for in time of a processor."""
SETTINGS: dict[str, Any] = {
    "lease_s": LEASE_S,
    "heartbeat_s": HEARTBEAT_S,
    "host_timeout_s": 6,
    "stop_grace_s": 2,
    "checkpoint_grace_s": 3,
}
DIGITS_EPOCHS = 3


@dataclass(frozen=True)
class Undisturbed:
    """A run that nothing struck."""

    length_s: float
    """From its submission to its end."""
    series: Sequence[tuple[str, int, float | None]]
    state: object
    """What is in its last checkpoint, as `state_of` reads it."""


class Lane:
    """Servers, a database and the workers of one or more hosts, for one trial after the other."""

    def __init__(self, postgres: PostgresServer, valkey: ValkeyServer, template: str, folder: Path) -> None:
        """Start in `folder`, on a database that is a copy of `template`. The servers are the caller's to close."""
        self.postgres = postgres
        self.valkey = valkey
        self.folder = folder
        self._closing = ExitStack()
        postgres.start()
        valkey.start()
        valkey.flushall()
        self.database_url = postgres.create_database(template=template)
        self._closing.callback(self._drop_database)
        self.service = self._closing.enter_context(Service(self.database_url, valkey.url, folder, **SETTINGS))
        self.watch = Watch(str(folder))
        self.watch.start()
        self._closing.callback(self.watch.stop)
        self.logs = Logs(folder)
        self._workers: dict[str, tuple[subprocess.Popen[bytes], dict[str, Any]]] = {}
        self._api: ApiServer | None = None
        self._guest: Guest | None = None
        self._undisturbed: dict[tuple[bool, int], Undisturbed] = {}

    def close(self) -> None:
        """End all that runs, and drop the database, also where a trial has left the servers down."""
        with self._closing:
            self.postgres.start()
            self.valkey.start()

    def make_ready(self) -> None:
        """See that servers and workers run, as the next trial expects it."""
        self.postgres.start()
        self.valkey.start()
        self.worker("alpha")
        for name in self._workers:
            self._start_worker(name)
            if name != "alpha":
                self._drain(name)

    def worker(self, name: str, **settings: Any) -> "subprocess.Popen[bytes]":
        """Return the worker of a host, started if it does not run; it stays for later trials.

        Of the standing hosts only `alpha` is given jobs in a trial that does not ask for the others by this.
        """
        worker = self._start_worker(name, **settings)
        with self.service.database.session_scope() as session:
            maintenance.take_back(session, name)
        return worker

    def dismiss(self, name: str) -> None:
        """Kill the worker of a host that no later trial is to find."""
        self._drain(name)  # or it is given jobs until it has been silent for long enough
        worker, _ = self._workers.pop(name)
        worker.kill()
        worker.wait()

    def api(self) -> ApiServer:
        """Return the API, started if it does not run; it stays for later trials."""
        if self._api is None:
            self._api = self._closing.enter_context(
                ApiServer(self.database_url, self.folder, broker_url=self.valkey.url)
            )
        elif not self._api.is_running:
            self._api.start()
        return self._api

    def guest(self) -> Guest:
        """Return the second host, started for the first who asks; it stays for later trials."""
        if self._guest is None:
            self._guest = Guest(self, self._closing, tick_s=TICK_S)
        return self._guest

    @contextmanager
    def workers_stopped(self) -> Iterator[None]:
        """Have no worker of any host do anything meanwhile; only for as long as that takes no host for lost."""
        running = [worker for worker, _settings in self._workers.values() if worker.poll() is None]
        try:
            for worker in running:
                worker.send_signal(signal.SIGSTOP)
            yield
        finally:
            for worker in running:
                worker.send_signal(signal.SIGCONT)

    def spec(
        self,
        device: object,
        *,
        is_ddp: bool,
        pace_s: float = PROGRAM_PACE_S,
        epochs: int = DIGITS_EPOCHS,
        **policy: Any,
    ) -> dict[str, Any]:
        """Return the training that trials are made with, as a client posts it.

        `pace_s` is how long a step of the program takes in its first attempt; `epochs` is how many of digits there are.
        """
        train = DIGITS | {"epochs": epochs} if is_ddp else program_train(pace_s=pace_s)
        return {"device": device, "train": train, **policy}

    def submit(self, device: object, *, is_ddp: bool, **policy: Any) -> int:
        """Submit the training that trials are made with, and return the job's id."""
        return self.service.submit_exactly(**self.spec(device, is_ddp=is_ddp, **policy))

    def post(self, spec: dict[str, Any]) -> int:
        """Submit a job over HTTP, which wakes the planner, and return its id."""
        return self.api().submit(**spec)

    def undisturbed(self, *, is_ddp: bool, ranks: int, nodes: int = 1) -> Undisturbed:
        """Return what the same training is like that nothing strikes; run once in the life of the lane."""
        key = (is_ddp, ranks * nodes)
        if key not in self._undisturbed:
            began = time.monotonic()
            device = ",".join(map(str, range(ranks)))
            job_id = self.submit(device, is_ddp=is_ddp, **({"nodes": nodes} if nodes > 1 else {}))
            self.service.wait_for(job_id, State.SUCCEEDED, timeout_s=120)
            length_s = time.monotonic() - began
            self._undisturbed[key] = Undisturbed(length_s, self.series_of(job_id), self.state_of(job_id))
        return self._undisturbed[key]

    def series_of(self, job_id: int) -> list[tuple[str, int, float | None]]:
        return laws.training_series(self.service.metrics(job_id))

    def state_of(self, job_id: int) -> object:
        """Load every checkpoint that the database offers of a job, and return what is in the furthest."""
        checkpoints = sorted(self.service.checkpoints(job_id), key=lambda each: each.step)
        states = [load_state(Path(each.path)) for each in checkpoints]
        assert states, f"job {job_id} has no checkpoint"
        return states[-1]

    def placements(self, job_id: int) -> Sequence[Placement]:
        with self.service.database.session_scope(read_only=True) as session:
            return session.scalars(select(Placement).where(Placement.job_id == job_id).order_by(Placement.id)).all()

    def _start_worker(self, name: str, **settings: Any) -> "subprocess.Popen[bytes]":
        is_new = name not in self._workers
        if not is_new:
            running, settings = self._workers[name]
            if running.poll() is None:
                return running
        worker = self.service.start_worker(name, **settings)
        self._workers[name] = (worker, settings)
        if is_new:
            # Its trainer's catalog loads torch: beside that of other lanes, no trial would get a processor in time.
            wait_until(self.service.catalog_is_known, timeout_s=120, what=f"the catalog of {name}")
        return worker

    def _drain(self, name: str) -> None:
        with self.service.database.session_scope() as session:
            maintenance.drain(session, name)

    def _drop_database(self) -> None:
        self.postgres.drop_database(self.database_url)


def load_state(path: Path) -> object:
    """The weights in a checkpoint, as plain values that compare by bits."""
    if path.suffix == ".json":
        return json.loads(path.read_text())
    import torch  # only where something was trained with it

    model = torch.load(path, weights_only=True)["model"]
    return {name: weight.numpy().tobytes() for name, weight in model.items()}
