"""Checkpoints of a job: listing, downloading and removing them."""

from collections.abc import Callable, Collection, Iterator
from pathlib import Path, PurePosixPath
from typing import Literal

from rankzero.connection import parsed
from rankzero.downloads import Source, download
from rankzero.errors import UsageError
from rankzero.models import Checkpoint, PrunedCheckpoints
from rankzero.resources.resource import Resource

Which = int | Literal["best", "last"]
"""A checkpoint: by its id, the best by the job's own measure, or the furthest."""


class Checkpoints(Resource):
    """The client's methods about checkpoints."""

    def checkpoints(self, job_id: int, *, with_removed: bool = False) -> Iterator[Checkpoint]:
        """Yield a job's checkpoints that still exist, oldest first; or also those whose files are gone."""
        query = {"removed": True if with_removed else None}
        yield from self._connection.pages(f"/jobs/{job_id}/checkpoints", Checkpoint, query)

    def checkpoint(self, job_id: int, which: Which) -> Checkpoint:
        """Return one checkpoint of a job. Raises UsageError where it has saved none that would be it."""
        path = f"/jobs/{job_id}/checkpoints"
        if isinstance(which, int):
            return parsed(Checkpoint, self._connection.get(f"{path}/{which}"))
        if which not in ("best", "last"):
            raise UsageError(f"{which!r:.100} is no checkpoint: name it by its id, or as 'best' or 'last'")
        found = self._connection.items(path, Checkpoint, {which: True})
        if not found:
            raise UsageError(f"job {job_id} has no checkpoint that is its {which}")
        return found[0]

    def download_checkpoint(
        self,
        job_id: int,
        which: Which,
        path: str | Path,
        *,
        on_progress: Callable[[int, int], object] | None = None,
    ) -> Path:
        """Write the file of a checkpoint to `path`, or into it where that is a folder, and return where it is.

        It is there whole, with the SHA-256 that it was saved with, or not at all. What broke off goes on where it was,
        also in the next call. `on_progress` is called with the bytes that are there and those there are to be. Raises
        DownloadError, and RefusedError where the service cannot read the file: its `problem` says on which host it is.
        """
        checkpoint = self.checkpoint(job_id, which)
        source = Source(
            f"/jobs/{job_id}/checkpoints/{checkpoint.id}/file",
            name=f"job-{job_id}-step-{checkpoint.step}{PurePosixPath(checkpoint.path).suffix}",
            sha256=checkpoint.sha256,
            size_bytes=checkpoint.size_bytes,
        )
        return download(self._connection, source, Path(path), on_progress=on_progress)

    def delete_checkpoint(self, job_id: int, checkpoint_id: int) -> None:
        """Remove a checkpoint: no run begins with it from now on, and its host deletes its file and its copy soon.

        Refused for one that a run may still need.
        """
        self._connection.delete(f"/jobs/{job_id}/checkpoints/{checkpoint_id}")

    def prune_checkpoints(
        self, job_id: int, *, keep: Collection[Literal["best", "last"]] = ("best", "last")
    ) -> PrunedCheckpoints:
        """Remove a job's checkpoints but for those named in `keep`, and those that a run may still need."""
        answer = self._connection.send("POST", f"/jobs/{job_id}/checkpoints/prune", {"keep": sorted(keep)})
        return parsed(PrunedCheckpoints, answer)
