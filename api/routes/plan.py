"""The plan of a job that is not submitted: what would come of it now."""

from fastapi import APIRouter

from api.access import Viewer
from api.methods import no_such_method
from api.plans import Plan, view_plan
from api.session import reading
from jobs.forecast import foresee
from jobs.spec import JobSpec

router = APIRouter(prefix="/jobs", tags=["jobs"])
# Else a job with the id `plan` would be asked for.
router.add_api_route("/plan", no_such_method, methods=["GET", "PUT", "PATCH", "DELETE"], include_in_schema=False)


@router.post("/plan", summary="Plan a job without submitting it")
def plan_job(spec: JobSpec, by: Viewer) -> Plan:
    """Return whether a job would start now and where, or else what it would wait for; nothing is stored.

    Refuses what `POST /jobs` refuses.
    """
    with reading() as session:
        forecast = foresee(session, spec, by=by)
    return view_plan(forecast)
