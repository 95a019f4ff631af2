"""When tokens were last used: noted in a thread of its own, so that no request waits for it, or fails by it."""

import threading
import time
from queue import SimpleQueue

import structlog
from sqlalchemy.exc import SQLAlchemyError

from jobs.database import get_database
from jobs.store import tokens

log = structlog.get_logger()


class LastUse:
    """Notes the use of tokens, of each at most once a minute. Call it from one thread: that of the event loop."""

    def __init__(self) -> None:
        self._noted: dict[int, float] = {}
        self._due: SimpleQueue[int] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def note(self, token_id: int) -> None:
        """Have it noted that a token is used now."""
        moment = time.monotonic()
        if moment < self._noted.get(token_id, float("-inf")) + tokens.NOTED_EVERY.total_seconds():
            return
        self._noted[token_id] = moment
        self._due.put(token_id)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="last-use", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            token_id = self._due.get()
            try:
                with get_database().session_scope() as session:
                    tokens.note_use(session, token_id)
            except SQLAlchemyError as error:  # the next use in a minute says as much
                log.warning("use_not_noted", token_id=token_id, error=str(error).splitlines()[0])
