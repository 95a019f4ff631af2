"""The service of the pictures: two hosts and a day's jobs of two users, written as workers would have.

It has no worker: on real devices such jobs take hours, and what the pictures show is to be the same each time.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from sqlalchemy import update
from sqlalchemy.orm import Session

from jobs import tokens
from jobs.access import Principal, Role
from jobs.database import Database, now
from jobs.planning import plan_once
from jobs.spec import JobSpec
from jobs.store import attempts, endings, hosts, jobs, leases, reports, telemetry, verbs
from jobs.store.hosts import DeviceInfo
from jobs.store.reports import MetricPoint
from jobs.store.telemetry import Stretch
from jobs.tables import Attempt, Job, JobEvent, Lease, Placement
from tests.catalog import known_catalog

USERS = ("ada", "grace")
HOSTS = {"atlas": 4, "borealis": 2}
"""Each with so many GPUs."""
MEMORY = 48 * 2**30
BATCH, LOG_EVERY = 256, 39
STEPS_PER_EPOCH = 195
"""Of the 50,000 images of CIFAR-10."""
WORKER = "1:1"


@dataclass(frozen=True)
class Run:
    """A job that a host has begun."""

    name: str
    user: str
    model: str
    device: str
    host: str
    ago_min: int
    """Minutes since it began."""
    took_min: int | None = None
    """Minutes that it ran; None while it does."""
    epochs: int = 60
    done: float = 1.0
    """The share of its steps that it has taken."""
    lr: float = 0.1
    labels: dict[str, str] = field(default_factory=dict)
    failure: str | None = None


RUNS = (
    Run("cifar-resnet18", "ada", "resnet18", "cuda:0", "atlas", 410, 96, labels={"team": "vision", "sweep": "lr"}),
    Run(
        *("cifar-r18-lr03", "ada", "resnet18", "cuda:1", "atlas", 408, 97),
        lr=0.3,
        labels={"team": "vision", "sweep": "lr"},
    ),
    Run(
        *("cifar-wide-lr3", "grace", "wide_resnet50_2", "cuda:2,cuda:3", "atlas", 300, 12),
        done=0.08,
        lr=3.0,
        labels={"team": "vision"},
        failure="train/loss became NaN at step 975; the last finite value was 41.3 at step 936",
    ),
    Run(
        *("cifar-resnet50", "ada", "resnet50", "cuda:0,cuda:1", "atlas", 171),
        epochs=90,
        done=0.62,
        labels={"team": "vision", "for": "report"},
    ),
    Run(
        *("cifar-convnext", "grace", "convnext_tiny", "cuda:2", "atlas", 54),
        epochs=90,
        done=0.21,
        lr=0.05,
        labels={"team": "vision"},
    ),
    Run(
        *("edge-mobilenet", "grace", "mobilenet_v3_small", "cuda:0", "borealis", 23),
        epochs=40,
        done=0.47,
        lr=0.06,
        labels={"team": "edge"},
    ),
)
WAITING: Sequence[tuple[str, dict[str, Any]]] = (
    ("grace", {"name": "cifar-effnet", "model": "efficientnet_b4", "device": {"count": 4}, "priority": 80}),
    ("ada", {"name": "cifar-r101", "model": "resnet101", "device": {"count": 2, "host": "atlas"}}),
    ("ada", {"name": "cifar-vit-b-16", "model": "vit_b_16", "device": {"count": 1}, "labels": {"for": "report"}}),
)
PAUSED = "cifar-vit-b-16"


def fill(database: Database) -> dict[str, int]:
    """Write all of it into an empty database; return the ids of the jobs by name."""
    catalog = json.loads(Path(known_catalog()["CATALOG"]).read_text())
    with database.session_scope() as session:
        for host, devices in HOSTS.items():
            _register(session, host, devices)
            hosts.set_catalog(session, host, catalog)
    ids = {}
    for run in RUNS:
        ids[run.name] = _begin(database, run)
    with database.session_scope() as session:
        for user, job in WAITING:
            ids[job["name"]] = _submit(session, user, **job)
            asked = now(session) - timedelta(minutes=len(RUNS) + len(WAITING) - len(ids) + 4)
            columns = {"created_at": asked, "queued_at": asked, "waits_from": asked}
            session.execute(update(Job).where(Job.id == ids[job["name"]]).values(columns))
        verbs.pause(session, ids[PAUSED])
    with database.session_scope() as session:
        for host in HOSTS:
            hosts.beat(session, host, worker=WORKER)
        plan_once(session)
    return ids


def make_tokens(database: Database) -> dict[str, str]:
    """Make a token for each of its users."""
    with database.session_scope() as session:
        return {
            user: tokens.create(session, user, Role.SUBMITTER, token_name="of the pictures", days=None)
            for user in USERS
        }


def _register(session: Session, host: str, devices: int) -> None:
    gpus = [
        DeviceInfo(f"cuda:{each}", "cuda", f"GPU-{host}-{each}", each, "NVIDIA L40S", MEMORY) for each in range(devices)
    ]
    hosts.register(session, host, worker=WORKER, run_root=f"/runs/{host}", devices=gpus)


def _submit(session: Session, user: str, *, model: str, epochs: int = 90, lr: float = 0.1, **job: Any) -> int:
    train = {"model": model, "data": "cifar10", "epochs": epochs, "batch": BATCH, "lr": lr, "log_every": LOG_EVERY}
    return jobs.submit(
        session, JobSpec.model_validate({"train": train, **job}), by=Principal(user, Role.SUBMITTER)
    ).job.id


def _begin(database: Database, run: Run) -> int:
    """Have a job run up to where it is."""
    with database.session_scope() as session:
        job: dict[str, Any] = {"name": run.name, "labels": run.labels, "device": run.device, "host": run.host}
        job_id = _submit(session, run.user, model=run.model, epochs=run.epochs, lr=run.lr, **job)
    with database.session_scope() as session:
        hosts.beat(session, run.host, worker=WORKER)
        (launch,) = plan_once(session)
    with database.session_scope() as session:
        placement = leases.claim(session, launch.placement_id, WORKER)
        attempts.set_running(session, placement, resumed_step=None)
        began = now(session) - timedelta(minutes=run.ago_min)
        ended = None if run.took_min is None else began + timedelta(minutes=run.took_min)
        points = _measure(run, began, ended or now(session))
        reports.add_metrics(session, placement, points)
        attempts.set_progress(session, placement, _progress(run, points))
        telemetry.add(session, run.host, _use(run, placement, began, ended or now(session)))
        if ended is not None:
            report = None if run.failure is None else _report(run.failure, ended)
            endings.end_placement(session, placement, completed=report is None, failure=report)
        _date(session, job_id, began, ended)
    return job_id


def _measure(run: Run, began: datetime, until: datetime) -> list[MetricPoint]:
    """The curves of a training that goes well, or that comes apart at its end."""
    random = Random(run.name)
    total = run.epochs * STEPS_PER_EPOCH
    last = round(total * run.done)
    floor = 0.05 + 0.4 * abs(math.log10(run.lr * 10)) / 3
    points = []
    for step in range(LOG_EVERY, last + 1, LOG_EVERY):
        epoch = 1 + (step - 1) // STEPS_PER_EPOCH
        at = began + (until - began) * step / last
        through = step / total
        falling = floor + 0.9 * math.exp(-through * 9) + 1.3 * math.exp(-through * 60) - floor * 0.8 * through**3
        values = {
            "train/loss": falling * (1 + 0.09 * random.gauss(0, 1)),
            "train/lr": run.lr * 0.5 * (1 + math.cos(math.pi * through)),
        }
        if run.failure is not None:
            values["train/loss"] = 2.3 + math.exp((step - last) / 200) * 39
        if step % STEPS_PER_EPOCH == 0:
            values["val/loss"] = 0.17 + falling * 0.85 + 0.02 * random.gauss(0, 1)
            values["val/accuracy"] = 0.953 - floor * 0.3 - 0.3 * (falling - floor) + 0.006 * random.gauss(0, 1)
        points += [MetricPoint(name, step, epoch, at, value) for name, value in values.items()]
    return points


def _progress(run: Run, points: Sequence[MetricPoint]) -> dict[str, Any]:
    return {
        "step": points[-1].step,
        "epoch": points[-1].epoch,
        "total_steps": run.epochs * STEPS_PER_EPOCH,
        "epochs": run.epochs,
        "steps_per_epoch": STEPS_PER_EPOCH,
        "batch": BATCH,
        "batch_per_rank": BATCH // (1 + run.device.count(",")),
        "values": {point.name: point.value for point in points},
    }


def _use(run: Run, placement: Placement, began: datetime, until: datetime) -> list[Stretch]:
    """What the GPUs did, in each minute."""
    random = Random(run.name)
    minutes = int((until - began).total_seconds() // 60)
    first = began.replace(second=0, microsecond=0)
    return [
        Stretch(
            uuid=f"GPU-{run.host}-{device.removeprefix('cuda:')}",
            at=first + timedelta(minutes=minute),
            samples=12,
            utilisation=min(100.0, random.gauss(93, 2.5)),
            memory_bytes=int(MEMORY * 0.71),
            temperature_c=round(66 + 5 * (1 - math.exp(-minute / 8)) + random.gauss(0, 0.6)),
            power_w=random.gauss(296, 7),
        )
        for minute in range(1, minutes + 1)
        for device in placement.devices
    ]


def _report(message: str, at: datetime) -> dict[str, Any]:
    return {"cause": "non_finite_loss", "message": message, "rank": 0, "time": at.isoformat()}


def _date(session: Session, job_id: int, began: datetime, ended: datetime | None) -> None:
    """Put what has just been written to the time at which it would have happened."""
    submitted = began - timedelta(seconds=4)
    of_job = {"created_at": submitted, "queued_at": submitted, "waits_from": submitted, "started_at": began}
    mine = Job.id == job_id
    session.execute(update(Job).where(mine).values(of_job))
    session.execute(update(Attempt).where(Attempt.job_id == job_id).values(created_at=submitted, started_at=began))
    session.execute(update(Lease).where(Lease.job_id == job_id).values(acquired_at=submitted))
    session.execute(update(JobEvent).where(JobEvent.job_id == job_id).values(at=began))
    if ended is not None:
        session.execute(update(Job).where(mine).values(finished_at=ended))
        session.execute(update(Attempt).where(Attempt.job_id == job_id).values(trained_until=ended, ended_at=ended))
        session.execute(update(Lease).where(Lease.job_id == job_id).values(released_at=ended))
