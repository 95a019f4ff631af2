"""The output of a job's ranks as it is read: its last lines, the lines that have a text in them, and whole streams.

A stream is what one rank printed in one attempt. It is stored in pieces that are whole lines, but for lines longer than
a piece. Offsets within a piece count the bytes of its text: those of the log itself, where that is UTF-8.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from jobs.column_types import octet_length
from jobs.store import reports
from jobs.tables import LogChunk

TAIL_BYTES, ALL_TAILS_BYTES = 4 * 1024 * 1024, 32 * 1024 * 1024
"""Of one stream, and of all that are shown, in the last lines: those of a program that prints no newlines would be all
that it printed, and those of hundreds of ranks more than a process of the API has memory for."""
PIECES = 16
"""That are read at once: each is up to 64 KiB."""


@dataclass(frozen=True)
class Part:
    """A part of a stored piece: some of its lines."""

    id: int
    """Of the piece."""
    attempt: int
    rank: int
    offset: int
    """Byte of the rank's log at which it begins."""
    text: str
    at: datetime


@dataclass(frozen=True)
class Found:
    """Parts of the output, and the id of the last piece that was looked at for them."""

    parts: Sequence[Part | LogChunk]
    after: int


@dataclass(frozen=True)
class Stream:
    """What one rank printed in one attempt."""

    attempt: int
    rank: int
    size_bytes: int


def read(
    session: Session, job_id: int, *, rank: int | None = None, attempt: int | None = None, after: int, limit: int
) -> Found:
    """Return up to `limit` pieces with ids above `after`, in the order in which they were shipped."""
    pieces = session.scalars(reports.select_logs(job_id, rank=rank, attempt=attempt, after=after).limit(limit)).all()
    return Found(pieces, pieces[-1].id if pieces else after)


def tail(session: Session, job_id: int, *, lines: int, rank: int | None = None, attempt: int | None = None) -> Found:
    """Return the last lines of each rank, over all its attempts or of one, in the order in which they were shipped."""
    # Without their sizes: for those SQLite reads all that was ever printed.
    there = session.execute(_select_streams(job_id, rank=rank, attempt=attempt)).all()
    left = {stream.rank: lines for stream in there}
    most_bytes = min(TAIL_BYTES, ALL_TAILS_BYTES // max(len(left), 1))
    parts: list[Part] = []
    for stream in reversed(there):
        if wanted := left[stream.rank]:
            newest_first = _select_stream(job_id, stream.attempt, stream.rank).order_by(LogChunk.offset.desc())
            found, left[stream.rank] = _last_lines(session, newest_first, wanted, most_bytes=most_bytes)
            parts += found
    parts.sort(key=lambda part: part.id)
    return Found(parts, parts[-1].id if parts else 0)


def search(
    session: Session,
    job_id: int,
    text: str,
    *,
    ignore_case: bool = False,
    rank: int | None = None,
    attempt: int | None = None,
    after: int = 0,
    limit: int,
) -> Found:
    """Return the lines that have a text in them, of the pieces with ids above `after`, in the order they were shipped.

    The piece with the last of `limit` lines is searched to its end, so there may be some more.
    """
    pieces = reports.select_logs(job_id, rank=rank, attempt=attempt, after=after)
    newest = session.scalar(select(func.max(pieces.order_by(None).subquery().c.id)))
    if newest is None:
        return Found((), after)
    pieces = pieces.where(LogChunk.id <= newest)
    if not ignore_case:
        pieces = pieces.where(LogChunk.text.contains(text, autoescape=True))
    elif text.isascii():  # of other letters the databases know only some in both cases
        pieces = pieces.where(LogChunk.text.icontains(text, autoescape=True))
    parts: list[Part] = []
    with closing(session.scalars(pieces.execution_options(yield_per=PIECES))) as found:
        for piece in found:
            parts += _matching(piece, text, ignore_case=ignore_case)
            if len(parts) >= limit:
                return Found(parts, piece.id)
    return Found(parts, newest)


def streams(session: Session, job_id: int, *, rank: int | None = None, attempt: int | None = None) -> Sequence[Stream]:
    """Return the streams of a job, by attempt and rank, with the size of what is stored of each."""
    query = _select_streams(job_id, rank=rank, attempt=attempt)
    return [Stream(*row) for row in session.execute(query.add_columns(func.sum(octet_length(LogChunk.text))))]


def read_on(session: Session, job_id: int, stream: Stream, *, after: int | None) -> Sequence[LogChunk]:
    """Return the next pieces of a stream, those that begin behind the offset `after`; none at its end."""
    query = _select_stream(job_id, stream.attempt, stream.rank).order_by(LogChunk.offset).limit(PIECES)
    return session.scalars(query if after is None else query.where(LogChunk.offset > after)).all()


def _select_streams(job_id: int, *, rank: int | None, attempt: int | None) -> Select[int, int]:
    """The attempt and rank of each stream, in their order."""
    of_stream = (LogChunk.attempt, LogChunk.rank)
    query = select(*of_stream).where(LogChunk.job_id == job_id).group_by(*of_stream).order_by(*of_stream)
    if rank is not None:
        query = query.where(LogChunk.rank == rank)
    if attempt is not None:
        query = query.where(LogChunk.attempt == attempt)
    return query


def _select_stream(job_id: int, attempt: int, rank: int) -> Select[LogChunk]:
    mine = (LogChunk.job_id == job_id, LogChunk.attempt == attempt, LogChunk.rank == rank)
    return select(LogChunk).where(*mine)


def _last_lines(
    session: Session, newest_first: Select[LogChunk], lines: int, *, most_bytes: int
) -> tuple[list[Part], int]:
    """The parts with the last lines of a stream, the last part first, and how many lines are still wanted."""
    parts: list[Part] = []
    newlines, size = lines, 0  # going back, there is one before each line
    with closing(session.scalars(newest_first.execution_options(yield_per=PIECES))) as pieces:
        for piece in pieces:
            if not parts and piece.text.endswith("\n"):
                newlines += 1  # the one that ends the last line
            here = piece.text.count("\n")
            if here >= newlines:
                before = piece.text.rsplit("\n", newlines)[0] + "\n"
                return [*parts, *([_part(piece, len(before))] if before != piece.text else [])], 0
            parts.append(_part(piece, 0))
            newlines -= here
            size += len(piece.text)
            if size >= most_bytes:
                return parts, 0
    return parts, newlines - 1


def _matching(piece: LogChunk, text: str, *, ignore_case: bool) -> Iterator[Part]:
    wanted = text.casefold() if ignore_case else text
    begin = 0
    for line in piece.text.split("\n"):
        end = begin + len(line) + 1
        if wanted in (line.casefold() if ignore_case else line):
            yield _part(piece, begin, end)
        begin = end


def _part(piece: LogChunk, begin: int, end: int | None = None) -> Part:
    """The characters of a piece from `begin` to `end`."""
    offset = piece.offset + len(piece.text[:begin].encode())
    return Part(piece.id, piece.attempt, piece.rank, offset, piece.text[begin:end], piece.at)
