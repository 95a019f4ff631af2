"""What happens, as a stream of server-sent events."""

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import StreamingResponse

from api.access import Viewer
from api.feed.follower import Follower
from api.feed.places import Places
from api.feed.query import FollowQuery, LastEventId
from api.feed.reader import reader_of
from api.feed.stream import open_stream
from api.server import cut_of
from jobs.feed import Position

router = APIRouter(tags=["events"])


class EventStream(StreamingResponse):
    """Events that are encoded already.

    The framework's own response encodes each event anew for each stream, and fails where a client goes that has not
    taken everything yet.
    """

    media_type = "text/event-stream"


async def _stream(
    request: Request,
    by: Viewer,
    query: Annotated[FollowQuery, Query()],
    last_event_id: LastEventId = None,
) -> AsyncIterator[AsyncIterator[bytes]]:
    text = last_event_id or query.after
    after = None if text is None else Position.parse(text)
    places = request.app.state.places
    assert isinstance(places, Places)
    follower = Follower(query.wanted, by, cut=cut_of(request))
    with places.taken(by):
        async with open_stream(reader_of(request.app), follower, after) as events:
            yield events


@router.get(
    "/events",
    summary="Follow what happens",
    response_class=EventStream,
    response_description="Events, until either side ends the stream.",
)
async def follow_events(events: Annotated[AsyncIterator[bytes], Depends(_stream)]) -> EventStream:
    """Stream events of all jobs, or of some, as they happen.

    `event` is the topic and `data` is JSON, as the lists show the same thing. First comes `hello`, with the position
    after which everything follows: what is read from the other paths after it is at least as new. A client that comes
    back with the id of the last event that it got misses none and gets none twice; where what it missed is not kept
    any more, a `reset` says so.
    """
    return EventStream(events, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
