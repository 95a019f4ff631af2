"""Output of a job's ranks: following it, its last lines, searching it, and downloading it."""

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query

from api.access import Viewer
from api.errors import RANGE
from api.logs import DownloadQuery, LogFile, LogQuery
from api.models import LogChunk, Logs
from api.queries import JobId
from api.session import reading
from jobs.store import jobs, output

router = APIRouter(prefix="/jobs/{job_id}/logs", tags=["jobs"])

_TEXT = {"text/plain": {"schema": {"type": "string"}}}
_FILE: dict[int | str, dict[str, Any]] = {
    200: {"description": "The output.", "content": _TEXT},
    206: {"description": "The part that `Range` asks for.", "content": _TEXT},
    **RANGE,
}


@router.get("", summary="Read the output of the ranks")
def list_logs(job_id: JobId, query: Annotated[LogQuery, Query()], _: Viewer) -> Logs:
    """Return a part of what a job's ranks printed, in the order it was shipped; `after` continues.

    With `tail`, the last lines of each rank, and `after` follows them; with `search`, the lines that have a text in
    them, all of the last piece of output that has any, so there may be more than `limit`.
    """
    wanted: dict[str, Any] = {"rank": query.rank, "attempt": query.attempt}
    with reading() as session:
        jobs.get(session, job_id)
        if query.tail is not None:
            found = output.tail(session, job_id, lines=query.tail, **wanted)
        elif query.search is not None:
            found = output.search(
                session,
                job_id,
                query.search,
                ignore_case=query.ignore_case,
                after=query.after,
                limit=query.limit,
                **wanted,
            )
        else:
            found = output.read(session, job_id, after=query.after, limit=query.limit, **wanted)
    return Logs(items=[LogChunk.model_validate(part) for part in found.parts], after=found.after)


@router.get(
    "/download",
    summary="Download the output of the ranks",
    status_code=200,  # else FastAPI would look for it among the parameters of the class
    response_class=LogFile,
    responses=_FILE,
)
def download_logs(
    job_id: JobId,
    query: Annotated[DownloadQuery, Query()],
    _: Viewer,
    requested: Annotated[str | None, Header(alias="Range", description="One range of bytes: `bytes=0-1023`.")] = None,
) -> LogFile:
    """Return what a job's ranks printed as text; of several streams each under a heading, by attempt and rank.

    Of one rank of one attempt a `Range` may be asked for.
    """
    with reading() as session:
        jobs.get(session, job_id)
        streams = output.streams(session, job_id, rank=query.rank, attempt=query.attempt)
    return LogFile(job_id, streams, query, requested)
