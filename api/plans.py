"""What `POST /jobs/plan` answers."""

from datetime import UTC, datetime

from pydantic import BaseModel, ConfigDict

from api.models import Obstacle
from jobs.forecast import Candidate, Forecast
from jobs.planner.view import Start


class _Shown(BaseModel):
    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)


class PlannedPlacement(_Shown):
    """One host's share of the attempt that would begin."""

    node_rank: int
    host: str
    devices: list[str]
    """In rank order."""


class CandidateHost(_Shown):
    """A host that could take the job, or one node of it, now or later."""

    host: str
    closed: str | None
    """Why it gets no new jobs now; null where it does."""
    devices: int
    """How many of its devices the job may use, busy or not."""
    free: list[str]
    """Those of them that nobody holds now; some may be set aside for a job that waits."""


class Plan(_Shown):
    """What would come of a job that is submitted now."""

    starts_now: bool
    """Whether it would start at the next plan."""
    placements: list[PlannedPlacement]
    """Where, by node; empty where it would wait."""
    reason: str | None
    """What it would wait for."""
    position: int
    """Its place in the line, from 1."""
    predicted_start: datetime | None
    """When it would start, by what is known now; null where nothing can be foretold."""
    waits_for: list[Obstacle]
    """The first few devices in its way."""
    world_size: int
    """Number of ranks, over all hosts."""
    batch_per_rank: int | None
    """Samples of each global batch that one rank takes; null where the run itself finds its batch, and for a script."""
    hosts: list[CandidateHost]
    """Every host that could take it, or one node of it, by name."""
    warnings: list[str]
    """What its submitter should know, such as that no host could run it."""


def view_plan(forecast: Forecast) -> Plan:
    """Return a forecast as the API shows it."""
    decision = forecast.decision
    starts = isinstance(decision, Start)
    start = forecast.at if isinstance(decision, Start) else decision.predicted_start
    nodes = decision.nodes if isinstance(decision, Start) else ()
    return Plan(
        starts_now=starts,
        placements=[
            PlannedPlacement(node_rank=rank, host=node.host_name, devices=[device.name for device in node.devices])
            for rank, node in enumerate(nodes)
        ],
        reason=None if isinstance(decision, Start) else decision.reason,
        position=forecast.position,
        predicted_start=None if start is None else datetime.fromtimestamp(start, UTC),
        waits_for=[]
        if isinstance(decision, Start)
        else [Obstacle(host=each.host, device=each.device, job_id=each.job_id) for each in decision.waits_for],
        world_size=forecast.world_size,
        batch_per_rank=forecast.batch_per_rank,
        hosts=[_view_candidate(each) for each in forecast.candidates],
        warnings=list(forecast.warnings),
    )


def _view_candidate(candidate: Candidate) -> CandidateHost:
    return CandidateHost(
        host=candidate.host_name,
        closed=candidate.closed,
        devices=len(candidate.devices),
        free=[device.name for device in candidate.free],
    )
