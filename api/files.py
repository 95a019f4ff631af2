"""Files as answers: whole, or the range that was asked for (RFC 9110, section 14), a block in memory at a time."""

from collections.abc import Iterator
from typing import BinaryIO

from pydantic import BaseModel, ConfigDict
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from api.etags import listed
from api.ranges import RangeError, byte_range
from jobs.checkpoint_files import OpenFile

BLOCK_BYTES = 256 * 1024


class FileHeaders(BaseModel):
    """What a request for a file may say of it."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    range: str | None = None
    """One range of bytes: `bytes=0-1023`, `bytes=1024-` or `bytes=-512`."""
    if_range: str | None = None
    """The ETag for which `Range` counts; of another file the whole is sent."""
    if_none_match: str | None = None
    """ETags: a file that has one of them is not sent again."""


class FileAnswer(StreamingResponse):
    """An open file, which is closed once it is sent, or nobody takes it any more."""

    media_type = "application/octet-stream"

    def __init__(self, file: OpenFile, *, name: str, sha256: str, requested: FileHeaders) -> None:
        """`name` is what it is saved as, of letters, digits, dots and dashes; `requested` what the request says of it.

        Raises RangeError.
        """
        self._content = file.content
        tag = f'"{sha256}"'
        headers = {
            "ETag": tag,
            "Accept-Ranges": "bytes",
            "Content-Disposition": f'attachment; filename="{name}"',
            # A browser that is handed a file of some user's must not take it for a page of ours.
            "X-Content-Type-Options": "nosniff",
        }
        if sha256 in listed(requested.if_none_match):
            file.content.close()
            super().__init__(iter(()), status_code=304, headers={"ETag": tag})
            return
        size = file.size_bytes
        asked = requested.range if requested.if_range in (None, tag) else None
        try:
            part = None if asked is None else byte_range(asked, size)
        except RangeError:
            file.content.close()
            raise
        start, end = part or (0, size)
        if part is not None:
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
        headers["Content-Length"] = str(end - start)
        super().__init__(_blocks(file.content, start, end), status_code=200 if part is None else 206, headers=headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._content.close()


def _blocks(content: BinaryIO, start: int, end: int) -> Iterator[bytes]:
    content.seek(start)
    left = end - start
    while left and (block := content.read(min(BLOCK_BYTES, left))):
        left -= len(block)
        yield block
