"""Checkpoints of a job: listing, downloading and removing them."""

import re
from pathlib import PurePosixPath
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query

from api.access import Submitter, Viewer
from api.checkpoints import Prune, PrunedCheckpoints
from api.errors import CONFLICT, FILE
from api.fields import SPARSE, CheckpointFields, SparseAnswer, picked
from api.files import FileAnswer, FileHeaders
from api.integers import IN_DIGITS
from api.methods import no_such_method
from api.models import Checkpoint
from api.pages import Page, read_page
from api.queries import MAX_ID, CheckpointQuery, JobId
from api.session import reading, writing
from jobs.checkpoint_files import open_checkpoint
from jobs.store import audit, checkpoints, jobs

router = APIRouter(prefix="/jobs/{job_id}/checkpoints", tags=["jobs"])
# Else a checkpoint with the id `prune` would be asked for.
router.add_api_route("/prune", no_such_method, methods=["GET", "PUT", "PATCH", "DELETE"], include_in_schema=False)

CheckpointId = Annotated[int, Path(ge=1, le=MAX_ID, description="Id of the checkpoint."), IN_DIGITS]

_BYTES = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
_FILE: dict[int | str, dict[str, Any]] = {
    200: {"description": "The file. `ETag` is its SHA-256.", "content": _BYTES},
    206: {"description": "The part that `Range` asks for.", "content": _BYTES},
    304: {"description": "The file is the one that `If-None-Match` names."},
    **FILE,
}


@router.get("", summary="List checkpoints", response_model=Page[Checkpoint], responses=SPARSE)
def list_checkpoints(
    job_id: JobId, query: Annotated[CheckpointQuery, Query()], _: Viewer
) -> Page[Checkpoint] | SparseAnswer:
    """Return one page of a job's checkpoints, oldest first."""
    found = checkpoints.select_some(
        job_id, with_removed=query.removed, best=query.best, last=query.last, newest_first=query.sort == "-id"
    )
    with reading() as session:
        jobs.get(session, job_id)
        return picked(read_page(session, found, query, Checkpoint, order=query.sort), query.fields)


@router.get("/{checkpoint_id}", summary="Show a checkpoint", response_model=Checkpoint, responses=SPARSE)
def get_checkpoint(
    job_id: JobId, checkpoint_id: CheckpointId, _: Viewer, fields: CheckpointFields = None
) -> Checkpoint | SparseAnswer:
    """Return one checkpoint of a job, also one whose file is gone."""
    with reading() as session:
        return picked(Checkpoint.model_validate(checkpoints.get(session, job_id, checkpoint_id)), fields)


@router.get(
    "/{checkpoint_id}/file",
    summary="Download a checkpoint",
    status_code=200,  # else FastAPI would look for it among the parameters of the class
    response_class=FileAnswer,
    responses=_FILE,
)
def get_checkpoint_file(
    job_id: JobId, checkpoint_id: CheckpointId, requested: Annotated[FileHeaders, Header()], _: Viewer
) -> FileAnswer:
    """Return a checkpoint's file, or its copy, where this API can read one of them; else a 409 says where they are.

    A program's own checkpoint that it has saved outside of its run directory is there too, and never served.
    """
    with reading() as session:
        checkpoint, run_dir = checkpoints.get_file(session, job_id, checkpoint_id)
    return FileAnswer(
        open_checkpoint(checkpoint, run_dir),
        name=_saved_as(job_id, checkpoint.step, checkpoint.path),
        sha256=checkpoint.sha256,
        requested=requested,
    )


@router.delete("/{checkpoint_id}", status_code=204, summary="Remove a checkpoint", responses=CONFLICT)
def delete_checkpoint(job_id: JobId, checkpoint_id: CheckpointId, by: Submitter) -> None:
    """Remove a checkpoint with its copy: no run begins with it from now on, and its host deletes the files soon.

    Refused for one that a run may still need: of an attempt that runs, the last of a job that goes on, or one that a
    job starts from.
    """
    with writing() as session:
        audit.act_on_job(session, by, "delete_checkpoint", job_id, checkpoint_id=checkpoint_id)
        checkpoints.remove(session, job_id, checkpoint_id)


@router.post("/prune", summary="Remove all but some checkpoints")
def prune_checkpoints(job_id: JobId, prune: Prune, by: Submitter) -> PrunedCheckpoints:
    """Remove a job's checkpoints with their copies, but for those named in `keep` and those that a run may need."""
    with writing() as session:
        audit.act_on_job(session, by, "prune_checkpoints", job_id, keep=prune.keep)
        return PrunedCheckpoints.model_validate(checkpoints.prune(session, job_id, keep=prune.keep))


def _saved_as(job_id: int, step: int, path: str) -> str:
    suffix = PurePosixPath(path).suffix
    return f"job-{job_id}-step-{step}{suffix if re.fullmatch(r'[.][A-Za-z0-9]{1,16}', suffix) else ''}"
