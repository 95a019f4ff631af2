"""What the API takes of a job's output: which part of it is wanted, and how it is downloaded."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError
from starlette.responses import StreamingResponse

from api.integers import IN_DIGITS
from api.queries import AfterQuery, Text
from api.ranges import byte_range
from api.session import reading
from jobs.store import output
from jobs.store.output import Stream

Rank = Annotated[int, Field(ge=0, le=2**31 - 1), IN_DIGITS]
AttemptNumber = Annotated[int, Field(ge=1, le=2**31 - 1), IN_DIGITS]


class LogQuery(AfterQuery):
    """Which part of the output."""

    rank: Rank | None = None
    """Only the output of this global rank."""
    attempt: AttemptNumber | None = None
    """Only the output of this attempt."""
    tail: Annotated[int, Field(ge=1, le=10_000), IN_DIGITS] | None = None
    """Only the last so many lines of each rank."""
    search: Annotated[Text, Field(min_length=1)] | None = None
    """Only lines that have this text in them, each as an item of its own."""
    ignore_case: bool = False
    """Whether `search` finds upper and lower case alike."""

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        if self.tail is not None and (given := self.model_fields_set & {"after", "limit", "search"}):
            raise _exclusive(min(given), "does not go with tail")
        if self.search is None and "ignore_case" in self.model_fields_set:
            raise _exclusive("ignore_case", "goes with search alone")
        return self


class DownloadQuery(BaseModel):
    """Which part of the output is downloaded."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    rank: Rank | None = None
    """Only the output of this global rank."""
    attempt: AttemptNumber | None = None
    """Only the output of this attempt."""


class LogFile(StreamingResponse):
    """The output of a job's ranks, read while it is sent."""

    media_type = "text/plain"

    def __init__(self, job_id: int, streams: Sequence[Stream], query: DownloadQuery, requested: str | None) -> None:
        """`requested` is the header `Range`; it counts for one rank of one attempt. Raises RangeError."""
        named = [f"attempt-{query.attempt}"] if query.attempt is not None else []
        named += [f"rank-{query.rank}"] if query.rank is not None else []
        headers = {
            "Content-Disposition": f'attachment; filename="{"-".join([f"job-{job_id}", *named])}.log"',
            "X-Content-Type-Options": "nosniff",
        }
        if query.rank is None or query.attempt is None:
            super().__init__(_with_headings(job_id, streams), headers=headers)
            return
        stream = streams[0] if streams else Stream(query.attempt, query.rank, 0)
        part = None if requested is None else byte_range(requested, stream.size_bytes)
        start, end = part or (0, stream.size_bytes)
        headers |= {"Accept-Ranges": "bytes", "Content-Length": str(end - start)}
        if part is not None:
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{stream.size_bytes}"
        super().__init__(_bytes(job_id, stream, start, end), status_code=200 if part is None else 206, headers=headers)


def _with_headings(job_id: int, streams: Sequence[Stream]) -> Iterator[bytes]:
    """All streams, one after another, each under a line like those of `tail` for several files."""
    for stream in streams:
        yield f"==> attempt {stream.attempt}, rank {stream.rank} <==\n".encode()
        last = b"\n"
        for last in _bytes(job_id, stream, 0, stream.size_bytes):
            yield last
        yield b"\n" if last.endswith(b"\n") else b"\n\n"


def _bytes(job_id: int, stream: Stream, start: int, end: int) -> Iterator[bytes]:
    """The bytes of a stream from `start` to `end`, each few pieces in a transaction of their own."""
    place, after = 0, None
    while place < end:
        with reading() as session:
            pieces = output.read_on(session, job_id, stream, after=after)
        if not pieces:
            return
        text = "".join(piece.text for piece in pieces).encode()
        yield text[max(0, start - place) : end - place]
        place, after = place + len(text), pieces[-1].offset


def _exclusive(field: str, why: str) -> PydanticCustomError:
    return PydanticCustomError("exclusive", "{why}", {"why": why, "field": field})
