"""How long a job waits for the service, and what the service costs while it idles."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import psutil

from benchmarks.report import Line, percentile, spread
from rankzero.client import Client
from rankzero.embedded import OWNER_VARIABLE, EmbeddedService
from trainer.errors import Cause, RunFailedError
from trainer.journal import Metrics, read_records
from trainer.process_identity import identity
from trainer.run_dir import RunDir

Value = TypeVar("Value")

TRAIN = {
    "model": "squeezenet1_1",
    "data": "digits",
    "image_size": 32,
    "epochs": 1,
    "batch": 64,
    "lr": 0.01,
    "num_workers": 0,
    "log_every": 1,
}
CLAIMS = 20
STARTS = 3


def measure(say: Callable[[str], None]) -> list[Line]:
    """Run an embedded service and measure it from outside, through its API."""
    say("service: starting it, and a job to warm up …")
    with tempfile.TemporaryDirectory(prefix="rankzero-bench-") as folder:
        path = Path(folder)
        service = EmbeddedService(data_dir=path / "service", simulated_devices=2, hide_gpus=True)
        with service, Client(service.url) as client:
            warm_up(client)
            at_rest = [_memory(f"{name} at rest", psutil.Process(service.pids[name])) for name in ("API", "worker")]
            claims = []
            for turn in range(CLAIMS):
                claims.append(_claim_s(client))
                say(f"service: POST → claimed, {turn + 1} of {CLAIMS}: {claims[-1] * 1000:.0f} ms")
            ours, theirs = [], []
            for turn in range(STARTS):
                ours.append(_first_step_s(client))
                theirs.append(_torchrun_first_step_s(path / f"torchrun-{turn}"))
                took = f"{ours[-1]:.1f} s, torchrun by hand {theirs[-1]:.1f} s"
                say(f"service: POST → first optimizer step, {turn + 1} of {STARTS}: {took}")
            say("service: a job for the memory of its supervisor …")
            supervisor = _supervisor_memory(client)
    ratio = statistics.median(ours) / statistics.median(theirs)
    return [
        Line("POST → claimed, p50", f"{percentile(claims, 0.5) * 1000:.0f} ms"),
        Line("POST → claimed, p95", f"{percentile(claims, 0.95) * 1000:.0f} ms"),
        Line("POST → first optimizer step, 2 ranks", spread(ours, "s"), f"torchrun: {spread(theirs, 's')}", ratio),
        *at_rest,
        supervisor,
    ]


def warm_up(client: Client) -> None:
    """Run one job to its end: the data set is written, every file is in the page cache."""
    _to_success(client, _submit(client, epochs=1))


def _to_success(client: Client, job_id: int) -> None:
    """Wait for a job's end. Raises RunFailedError, saying why, where it is no success."""
    job = client.wait(job_id, timeout_s=180)
    if job.state != "succeeded":
        why = job.failure.message if job.failure else job.reason
        raise RunFailedError(f"the service's job {job_id} is {job.state}: {why}", cause=Cause.EXCEPTION)


def _submit(client: Client, *, epochs: int) -> int:
    return client.submit(device="0,1", train=TRAIN | {"epochs": epochs}).id


def _claim_s(client: Client) -> float:
    """Seconds from just before POST to the supervisor's claim, on this machine's one clock; the job is cancelled."""
    before = time.time()
    job = client.submit(device="0,1", train=TRAIN)
    claimed_at = _until(lambda: _claimed_at(client, job.id), what=f"job {job.id} to be claimed")
    client.cancel(job.id)
    client.wait(job.id, timeout_s=60)
    return claimed_at.timestamp() - before


def _claimed_at(client: Client, job_id: int) -> datetime | None:
    places = (place for attempt in client.attempts(job_id) for place in attempt.placements)
    return next((place.claimed_at for place in places if place.claimed_at is not None), None)


def _first_step_s(client: Client) -> float:
    """Seconds from just before POST to the run's first metric record, both by this machine's clock."""
    before = time.time()
    job_id = _submit(client, epochs=1)
    _to_success(client, job_id)
    first: datetime = min(metric.at for metric in client.metrics(job_id))
    return first.timestamp() - before


def _torchrun_first_step_s(folder: Path) -> float:
    """The same for `torchrun` of the same config, started by hand."""
    folder.mkdir()
    (folder / "train.yaml").write_text(json.dumps(TRAIN | {"device": "cpu"}))  # JSON is YAML
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "trainer"]
    before = time.time()
    subprocess.run(
        [*command, str(folder / "train.yaml"), "--output", str(folder / "run")],
        check=True,
        capture_output=True,
        cwd=folder,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    return _first_metric(RunDir(folder / "run")).timestamp() - before


def _first_metric(run_dir: RunDir) -> datetime:
    return next(record.time for record in read_records(run_dir.journal) if isinstance(record, Metrics))


def _supervisor_memory(client: Client) -> Line:
    job_id = _submit(client, epochs=200)
    _until(lambda: client.get(job_id).state == "running" or None, what=f"job {job_id} to run")
    line = _memory("supervisor of a running job", _supervisor())
    client.cancel(job_id)
    client.wait(job_id, timeout_s=60)
    return line


def _memory(what: str, process: psutil.Process) -> Line:
    return Line(f"{what}: resident memory", f"{process.memory_info().rss / 1e6:.0f} MB")


def _supervisor() -> psutil.Process:
    """The one supervisor of this process's service."""
    mine = identity(os.getpid())
    for process in psutil.process_iter(["cmdline"]):
        if "worker.supervisor" in (process.info["cmdline"] or []) and process.environ().get(OWNER_VARIABLE) == mine:
            return process
    raise AssertionError("no supervisor runs")


def _until(condition: Callable[[], Value | None], *, what: str, timeout_s: float = 60) -> Value:
    deadline = time.monotonic() + timeout_s
    while (value := condition()) is None:
        if time.monotonic() > deadline:
            raise RunFailedError(f"a benchmark waited {timeout_s:g} s in vain for {what}", cause=Cause.EXCEPTION)
        time.sleep(0.01)
    return value
