"""A whole service for a test: real workers against a real database and broker, and what tests ask of them."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from sqlalchemy import select

from jobs.database import Database
from jobs.spec import JobSpec
from jobs.states import Intent, State
from jobs.store import attempts, hosts, jobs, reports
from jobs.tables import Attempt, Checkpoint, Job, JobEvent, Lease, Metric, Placement
from tests import laws, program
from tests.catalog import known_catalog
from tests.children import start_child
from tests.waiting import wait_until
from worker import cgroups
from worker.processes import MarkedProcess, end_run, marked_processes

DIGITS = {
    "recipe": "classification",
    "model": "squeezenet1_1",
    "data": "digits",
    "image_size": 32,
    "epochs": 2,
    "batch": 64,
    "lr": 0.01,
    "num_workers": 0,
    "log_every": 1,
}
"""A training that takes seconds; the tests change what they need of it."""
PROGRAM_STEPS = 40
PROGRAM_PACE_S = 0.05


def program_train(*, steps: int = PROGRAM_STEPS, pace_s: float = PROGRAM_PACE_S) -> dict[str, Any]:
    """The `train` of a job that runs `tests.program`: in its first attempt each of `steps` takes `pace_s` seconds."""
    return {"recipe": "script", "options": {"script": program.__file__, "args": [steps, pace_s]}}


class Service:
    """Workers of one or more hosts, each a process that the test may kill, and the queries that tests ask."""

    def __init__(
        self, database_url: str, broker_url: str, folder: Path, *, asks_trainer: bool = False, **settings: object
    ) -> None:
        """Only with `asks_trainer` does each worker ask for its trainer's catalog; else it is that of another one."""
        self._asks_trainer = asks_trainer
        self.database = Database(database_url)
        self.folder = folder
        self._environment = {
            "RANKZERO_DATABASE_URL": database_url,
            "RANKZERO_BROKER_URL": broker_url,
            "RANKZERO_DATA_ROOT": str(_data_root()),
            "RANKZERO_SCRIPTS": "on",
            "RANKZERO_TICK_S": "0.5",
            "RANKZERO_HEARTBEAT_S": "1",
            "RANKZERO_LEASE_S": "60",
            "RANKZERO_RETRY_BACKOFF_S": "0.2",
            "RANKZERO_SIMULATED_DEVICES": "2",
            "CUDA_VISIBLE_DEVICES": "",  # simulated devices have no place beside real ones
            "OMP_NUM_THREADS": "1",
            **{f"RANKZERO_{name.upper()}": str(value) for name, value in settings.items()},
        }
        self._workers: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.kill()
            worker.wait()
        for process in self.processes():
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
        for record in self.folder.glob(f"*/job-*/attempt-*/{cgroups.RECORD}"):
            if cgroups.of_run(record.parent) is not None:
                end_run(str(record.parent))  # the group of a run whose supervisor was killed just above
        self.database.dispose()

    def start_worker(
        self, host_name: str = "alpha", *, inside: Sequence[str] = (), **settings: object
    ) -> "subprocess.Popen[bytes]":
        """Start the worker of a host and return once it has registered and beaten."""
        before = self.heartbeat(host_name)
        worker = self.spawn_worker(host_name, log_name=host_name, inside=inside, **settings)
        wait_until(
            lambda: worker.poll() is None and self.heartbeat(host_name) != before,
            timeout_s=30,
            what=lambda: f"the worker of {host_name} to report; its log:\n{self.worker_log(host_name)}",
        )
        return worker

    def spawn_worker(
        self, host_name: str = "alpha", *, log_name: str | None = None, inside: Sequence[str] = (), **settings: object
    ) -> "subprocess.Popen[bytes]":
        """Start the worker of a host and return at once. `inside` is the command that puts it into another network."""
        run_root = self.folder / host_name
        run_root.mkdir(exist_ok=True)
        worker = start_child(
            [*inside, sys.executable, "-m", "worker"],
            log=self.folder / f"{log_name or host_name}.log",
            folder=self.folder,
            environment=os.environ
            | ({} if self._asks_trainer else known_catalog())
            | self._environment
            | {"RANKZERO_HOST_NAME": host_name, "RANKZERO_RUN_ROOT": str(run_root)}
            | {f"RANKZERO_{name.upper()}": str(value) for name, value in settings.items()},
        )
        self._workers.append(worker)
        return worker

    def catalog_is_known(self) -> bool:
        """Whether every host has published what its trainer can run."""
        with self.database.session_scope(read_only=True) as session:
            return all(host.catalog is not None for host in hosts.all_hosts(session))

    def worker_log(self, log_name: str = "alpha") -> str:
        """What the workers of a host wrote, or the one that was given this name for its log."""
        return (self.folder / f"{log_name}.log").read_text()

    def supervisor_log(self, placement: Placement) -> str:
        return (Path(placement.run_dir) / "supervisor.log").read_text()

    def submit(self, device: object = "0,1", *, train: dict[str, Any] | None = None, **policy: Any) -> int:
        """Store a job that trains digits, as the API does, and return its id; `train` is what it has otherwise."""
        return self.submit_exactly(device, train=DIGITS | (train or {}), **policy)

    def submit_program(
        self, device: object = "0,1", *, steps: int = PROGRAM_STEPS, pace_s: float = PROGRAM_PACE_S, **policy: Any
    ) -> int:
        """Store a job that runs `tests.program`, and return its id: for what is the same whatever a job trains."""
        return self.submit_exactly(device, train=program_train(steps=steps, pace_s=pace_s), **policy)

    def submit_exactly(self, device: object, *, train: dict[str, Any], **policy: Any) -> int:
        """Store a job as the API does and return its id."""
        spec = JobSpec.model_validate({"device": device, "train": train, **policy})
        with self.database.session_scope() as session:
            return jobs.submit(session, spec).job.id

    def job(self, job_id: int) -> Job:
        with self.database.session_scope(read_only=True) as session:
            return jobs.get(session, job_id)

    def set_intent(self, job_id: int, intent: Intent) -> None:
        with self.database.session_scope() as session:
            jobs.set_intent(session, job_id, intent)

    def wait_for(self, job_id: int, *states: State, timeout_s: float = 90) -> Job:
        """Return the job once it is in one of `states`."""
        wait_until(
            lambda: self.job(job_id).state in states,
            timeout_s=timeout_s,
            what=lambda: f"job {job_id} to be {' or '.join(states)}; {self.story(job_id)}",
        )
        return self.job(job_id)

    def wait_for_attempt(self, job_id: int, number: int, *, timeout_s: float = 60) -> None:
        """Return once this attempt of the job trains."""
        wait_until(
            lambda: (self.job(job_id).attempt, self.job(job_id).state) == (number, State.RUNNING),
            timeout_s=timeout_s,
            what=lambda: f"attempt {number} of job {job_id} to run; {self.story(job_id)}",
        )

    def wait_for_step(self, job_id: int, step: int, *, timeout_s: float = 60) -> None:
        """Return once the database knows of `step` optimizer steps of the job's newest attempt."""
        wait_until(
            lambda: ((self.job(job_id).progress or {}).get("step") or 0) >= step,
            timeout_s=timeout_s,
            what=lambda: f"job {job_id} to reach step {step}; {self.story(job_id)}",
        )

    def wait_for_checkpoint(self, job_id: int, *, timeout_s: float = 60) -> Checkpoint:
        wait_until(
            lambda: self.checkpoints(job_id), timeout_s=timeout_s, what=lambda: f"a checkpoint; {self.story(job_id)}"
        )
        return self.checkpoints(job_id)[-1]

    def checkpoints(self, job_id: int) -> Sequence[Checkpoint]:
        with self.database.session_scope(read_only=True) as session:
            return session.scalars(reports.select_checkpoints(job_id)).all()

    def metrics(self, job_id: int) -> Sequence[Metric]:
        with self.database.session_scope(read_only=True) as session:
            return session.scalars(reports.select_metrics(job_id)).all()

    def attempts(self, job_id: int) -> Sequence[Attempt]:
        with self.database.session_scope(read_only=True) as session:
            return attempts.select_attempts(session, job_id)

    def placement(self, job_id: int) -> Placement:
        """The newest placement of a job."""
        with self.database.session_scope(read_only=True) as session:
            return attempts.select_placements(session, job_id)[-1]

    def leases(self, job_id: int, attempt: int) -> Sequence[Lease]:
        query = select(Lease).where(Lease.job_id == job_id, Lease.attempt == attempt).order_by(Lease.id)
        with self.database.session_scope(read_only=True) as session:
            return session.scalars(query).all()

    def wait_for_supervisor(self, job_id: int, *, timeout_s: float = 30) -> None:
        """Return once a supervisor has claimed the job's newest placement."""
        wait_until(
            lambda: self.job(job_id).attempt and self.placement(job_id).supervisor,
            timeout_s=timeout_s,
            what=lambda: f"a supervisor of job {job_id}; {self.story(job_id)}",
        )

    def supervisor_pid(self, job_id: int) -> int:
        supervisor = self.placement(job_id).supervisor
        assert supervisor is not None
        return int(supervisor.partition(":")[0])

    def rank_pids(self, job_id: int) -> list[int]:
        """Every live process of the job's newest attempt: the launcher, the ranks and their children."""
        run_dir = self.placement(job_id).run_dir
        return [process.pid for process in marked_processes() if process.run_dir == run_dir]

    def processes(self) -> list[MarkedProcess]:
        """Every live process of a run of this service, its supervisors included."""
        root = str(self.folder)
        return [each for each in marked_processes() if (each.run_dir or each.supervisor_of or "").startswith(root)]

    def story(self, job_id: int) -> str:
        """What happened to a job, for the message of a failed test."""
        with self.database.session_scope(read_only=True) as session:
            job = jobs.get(session, job_id)
            events = session.scalars(select(JobEvent).where(JobEvent.job_id == job_id).order_by(JobEvent.id)).all()
            lines = [f"{event.at} #{event.attempt} {event.kind} {event.to_state} {event.detail}" for event in events]
        return "\n".join([f"it is {job.state}: {job.reason or job.failure}", *lines[-15:]])

    def assert_laws_held(self, *job_ids: int) -> None:
        """After any fault, once these jobs are terminal and no other job runs: see `tests.laws`."""
        for job_id in job_ids:
            assert State(self.job(job_id).state).is_terminal, self.story(job_id)
        laws.assert_held(self.database, job_ids)
        wait_until(
            lambda: not self.processes(),
            timeout_s=10,
            what=lambda: f"all processes to be gone: {self.processes()}",
        )

    def assert_same_series(self, job_id: int, undisturbed: int) -> None:
        """A run that was disturbed tells of the same training, bit for bit, as one that was not."""
        assert laws.training_series(self.metrics(job_id)) == laws.training_series(self.metrics(undisturbed))

    def heartbeat(self, host_name: str) -> object:
        """When the worker of a host was last heard of; None where no host has this name."""
        with self.database.session_scope(read_only=True) as session:
            return {host.name: host.heartbeat_at for host in hosts.all_hosts(session)}.get(host_name)


def is_running(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _data_root() -> Path:
    """Where the digits are written once for all tests of this machine's user."""
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "rankzero-tests"
