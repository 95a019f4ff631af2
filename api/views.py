"""Answers that join several rows: attempts with their placements, hosts with their devices."""

from sqlalchemy.orm import Session

from api.models import Attempt, Attempts, Device, Holder, Host, Hosts, PlacedDevice, Placement
from jobs import tables
from jobs.database import now
from jobs.store import attempts, hosts, jobs


def view_attempts(session: Session, job_id: int) -> Attempts:
    """Return a job's attempts with what each was given. Raises NotFoundError."""
    jobs.get(session, job_id)
    placed: dict[int, list[Placement]] = {}
    for row in attempts.select_placements(session, job_id):
        placed.setdefault(row.attempt, []).append(_view_placement(session, row))
    return Attempts(
        items=[
            Attempt.model_validate(
                {
                    "number": row.number,
                    "outcome": row.outcome,
                    "failure": row.failure,
                    "world_size": row.world_size,
                    "resumed_step": row.resumed_step,
                    "created_at": row.created_at,
                    "started_at": row.started_at,
                    "ended_at": row.ended_at,
                    "placements": placed.get(row.number, []),
                }
            )
            for row in attempts.select_attempts(session, job_id)
        ]
    )


def view_hosts(session: Session) -> Hosts:
    """Return every host with its devices and who holds each."""
    at = now(session)
    by_host: dict[str, list[Device]] = {}
    for row, job_id, attempt in hosts.devices(session):
        held_by = None if job_id is None or attempt is None else Holder(job_id=job_id, attempt=attempt)
        device = Device(
            name=row.name,
            driver_index=row.driver_index,
            uuid=row.uuid,
            kind=row.kind,
            model=row.model,
            simulated=row.simulated,
            memory_bytes=row.memory_bytes,
            held_by=held_by,
        )
        by_host.setdefault(row.host_name, []).append(device)
    return Hosts(
        items=[
            Host(
                name=host.name,
                alive=hosts.is_alive(host, at),
                registered_at=host.registered_at,
                heartbeat_at=host.heartbeat_at,
                devices=by_host.get(host.name, []),
            )
            for host in hosts.all_hosts(session)
        ]
    )


def _view_placement(session: Session, row: tables.Placement) -> Placement:
    return Placement(
        node_rank=row.node_rank,
        host=row.host_name,
        devices=[
            # By the name it was given under: the worker may number its devices otherwise by now.
            PlacedDevice.model_validate(device).model_copy(update={"name": name})
            for name, device in zip(row.devices, attempts.device_rows(session, row), strict=True)
        ],
        run_dir=row.run_dir,
        created_at=row.created_at,
        claimed_at=row.claimed_at,
        ended_at=row.ended_at,
    )
