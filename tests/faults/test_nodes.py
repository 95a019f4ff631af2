"""Runs on two hosts whose parts die: one attempt ends on both, its devices come free on both, and it is tried again."""

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from sqlalchemy import select

from jobs.states import Intent, Outcome, State
from jobs.tables import Lease, Placement
from tests.service import Service, is_running
from tests.waiting import wait_until
from worker.processes import marked_processes

pytestmark = pytest.mark.timeout(300)

LEASE_S = 8
LONG = {"epochs": 2, "save_every": 4}


@pytest.fixture
def service(postgresql_url: str, broker_url: str, tmp_path: Path) -> Iterator[Service]:
    """A service with leases that run out soon, for hosts that can read each other's runs."""
    with Service(postgresql_url, broker_url, tmp_path, lease_s=LEASE_S, host_timeout_s=3) as service:
        yield service


def start_hosts(service: Service) -> dict[str, "subprocess.Popen[bytes]"]:
    addresses = {"alpha": "127.0.0.1", "beta": "127.0.0.2"}
    return {name: start_host(service, name, address) for name, address in addresses.items()}


def start_host(service: Service, name: str, address: str) -> "subprocess.Popen[bytes]":
    return service.start_worker(name, address=address, run_root=service.folder / "runs")


def newest(service: Service, job_id: int) -> Sequence[Placement]:
    """The placements of the job's newest attempt, by node_rank."""
    with service.database.session_scope(read_only=True) as session:
        attempt = service.job(job_id).attempt
        query = select(Placement).where(Placement.job_id == job_id, Placement.attempt == attempt)
        return session.scalars(query.order_by(Placement.node_rank)).all()


def processes_of(placement: Placement) -> list[int]:
    """The launcher, the ranks and their children on one host."""
    return [process.pid for process in marked_processes() if process.run_dir == placement.run_dir]


def rank_of(placement: Placement) -> int:
    """The process of the one rank on one host."""
    environments = {pid: Path(f"/proc/{pid}/environ").read_bytes().split(b"\0") for pid in processes_of(placement)}
    (pid,) = [pid for pid, environment in environments.items() if b"LOCAL_RANK=0" in environment]
    return pid


def supervisor_of(placement: Placement) -> int:
    assert placement.supervisor is not None
    return int(placement.supervisor.partition(":")[0])


def kill(*pids: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def is_starting(service: Service, job_id: int, attempt: int) -> bool:
    """Whether there are ranks of the attempt on all its hosts, which need not have met yet."""
    placements = newest(service, job_id)
    return placements[0].attempt == attempt and all(len(processes_of(placement)) >= 2 for placement in placements)


def wait_until_lost(service: Service, job_id: int, attempt: int) -> None:
    """Return once the attempt has ended, with all that it had on both hosts gone and free."""
    placements = newest(service, job_id)
    wait_until(
        lambda: service.attempts(job_id)[attempt - 1].outcome == Outcome.LOST,
        timeout_s=60,
        what=lambda: f"attempt {attempt} to be lost; {service.story(job_id)}",
    )
    assert all(lease.released_at is not None for lease in service.leases(job_id, attempt))
    assert not any(is_running(pid) for placement in placements for pid in processes_of(placement))


def test_a_run_on_two_hosts_survives_the_death_of_a_rank_and_of_a_host_and_tells_of_the_same_training(
    service: Service,
) -> None:
    workers = start_hosts(service)
    undisturbed = service.submit("0", train=LONG, nodes=2)
    service.wait_for(undisturbed, State.SUCCEEDED)
    job_id = service.submit("0", train=LONG, nodes=2)

    service.wait_for_step(job_id, 3)
    kill(rank_of(newest(service, job_id)[1]))
    wait_until_lost(service, job_id, 1)

    service.wait_for_checkpoint(job_id)
    wait_until(lambda: is_starting(service, job_id, 2), timeout_s=60, what=lambda: service.story(job_id))
    beta = newest(service, job_id)[1]
    workers["beta"].kill()
    kill(supervisor_of(beta), *processes_of(beta))
    wait_until_lost(service, job_id, 2)
    start_host(service, "beta", "127.0.0.2")

    service.wait_for(job_id, State.SUCCEEDED)
    told = [attempt.failure or {} for attempt in service.attempts(job_id)]
    assert [(failure.get("cause"), failure.get("rank")) for failure in told] == [
        ("killed_by_signal", 1),
        ("lost", None),
        (None, None),
    ]
    assert told[1]["message"] == "its lease ran out: no word from its supervisor on beta"
    assert service.attempts(job_id)[-1].resumed_step is not None
    service.assert_laws_held(undisturbed, job_id)
    service.assert_same_series(job_id, undisturbed)


def test_a_run_on_two_hosts_is_paused_with_a_checkpoint_stops_on_both_and_goes_on_from_its_new_copy(
    service: Service, tmp_path: Path
) -> None:
    for name, address in {"alpha": "127.0.0.1", "beta": "127.0.0.2"}.items():
        service.start_worker(name, address=address)  # each with a run root of its own
    job_id = service.submit("0", train={"epochs": 200}, nodes=2, checkpoint_root=str(tmp_path / "shared"))
    service.wait_for_step(job_id, 3)

    service.set_intent(job_id, Intent.PAUSE)

    service.wait_for(job_id, State.PAUSED)
    (attempt,) = service.attempts(job_id)
    assert (attempt.outcome, service.job(job_id).retries) == (Outcome.PAUSED, 0)
    steps = [each.step for each in service.metrics(job_id) if each.name == "train/loss"]
    assert service.checkpoints(job_id)[-1].step == max(steps)
    with service.database.session_scope(read_only=True) as session:
        assert session.scalars(select(Lease).where(Lease.released_at.is_(None))).all() == []

    service.set_intent(job_id, Intent.RUN)

    service.wait_for_step(job_id, max(steps) + 1)
    assert service.attempts(job_id)[-1].resumed_step == max(steps), service.story(job_id)
    service.set_intent(job_id, Intent.CANCEL)
    service.wait_for(job_id, State.CANCELLED)
    service.assert_laws_held(job_id)
