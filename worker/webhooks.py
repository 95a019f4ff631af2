"""Webhooks: a thread of the worker that has whatever is due sent, and says what came of each try."""

import json
import random
import threading
from collections import Counter
from datetime import datetime, timedelta
from importlib.metadata import version

import structlog
from sqlalchemy.exc import SQLAlchemyError
from standardwebhooks import Webhook

from jobs.addresses import parse_allowed
from jobs.database import Database
from jobs.errors import NoKeyError
from jobs.sealing import unseal
from jobs.settings import Settings
from jobs.store import deliveries
from jobs.store.deliveries import AT_ONCE, Claim, Try
from worker.clock import clock
from worker.outbound import NotSentError, Outbound
from worker.steps import attempted

TIMEOUT_S = 15
"""Seconds that a receiver has to answer."""
MOST_LANES = 64
"""Deliveries that a worker sends at once, over all webhooks."""
KEYLESS_S = 60
"""Seconds for which a worker that cannot sign a message leaves it to others."""
LAST_S = 3
"""Seconds that what is being sent gets to end when the worker stops; else it is sent again, by another."""
MOST_TOLD = 500
"""Characters of an error that nobody foresaw."""
FORGET_S = 3600
"""Seconds between two deletions of what is too old."""
FORGET_AT_ONCE = 1000
"""Deliveries in one deletion: few enough to hold nobody up."""

log = structlog.get_logger()


class Webhooks(threading.Thread):
    """Looks every `tick_s` for what is due, and has it sent in lanes: threads that each serve one webhook until nothing
    of it is due, or no lane is left, so that receivers that are slow hold up no other."""

    def __init__(self, database: Database, settings: Settings) -> None:
        super().__init__(name="webhooks", daemon=True)
        self._database = database
        self._settings = settings
        self._outbound = Outbound(parse_allowed(settings.webhook_allow), timeout_s=TIMEOUT_S)
        self._lanes: Counter[int] = Counter()
        """By webhook; lanes add and remove themselves under the lock."""
        self._changed = threading.Condition()
        self.is_keyless = False
        """Whether that is so, and told."""
        self._stopping = threading.Event()

    def run(self) -> None:
        """Look until stopped; what fails is done with a later look."""
        forgot_at = float("-inf")
        while not self._stopping.wait(self._settings.tick_s):
            with attempted("webhooks", self._database):
                self._start_lanes()
                if clock() - forgot_at >= FORGET_S:
                    forgot_at = clock()
                    self._forget()

    def stop(self) -> None:
        """Begin nothing new, and wait a little for what is being sent."""
        self._stopping.set()
        self.join()
        with self._changed:
            self._changed.wait_for(lambda: not self._lanes.total(), timeout=LAST_S)

    def _start_lanes(self) -> None:
        """Start a lane for each webhook that has something due and not as many lanes as it may have: first for those
        that have fewest."""
        with self._database.session_scope(read_only=True) as session:
            due = deliveries.due_webhooks(session)
        if due and self._settings.key_file is None:
            if not self.is_keyless:
                self.is_keyless = True
                log.error("webhooks_unsigned", reason="this host has no RANKZERO_KEY_FILE: it leaves them to others")
            return
        for webhook_id in sorted(due, key=lambda each: (self._lanes[each], random.random())):
            with self._changed:
                if self._lanes[webhook_id] >= AT_ONCE or self._lanes.total() >= MOST_LANES:
                    continue
                name = f"webhook-{webhook_id}"
                threading.Thread(target=self._serve, args=[webhook_id], name=name, daemon=True).start()
                self._lanes[webhook_id] += 1

    def _serve(self, webhook_id: int) -> None:
        """Send what is due of a webhook, one after the other, until nothing is, or others may wait for the lane."""
        try:
            while not self._stopping.is_set():
                with self._database.session_scope() as session:
                    claim = deliveries.claim(session, webhook_id)
                if claim is None:
                    return
                self._deliver(claim)
                with self._changed:
                    if self._lanes.total() >= MOST_LANES:
                        return
        except SQLAlchemyError as error:
            # Sent or not, it is sent again once its claim is over.
            log.warning("database_away", step="webhooks", error=str(error).splitlines()[0])
        except Exception:  # a defect of ours, told in the log with its traceback
            log.exception("webhook_failed", webhook_id=webhook_id)
        finally:
            with self._changed:
                self._lanes[webhook_id] -= 1
                self._changed.notify_all()

    def _deliver(self, claim: Claim) -> None:
        """Send what was claimed and write what came of it."""
        try:
            key = unseal(claim.sealed_key)
        except NoKeyError as error:
            log.error("webhook_unsigned", webhook_id=claim.webhook_id, reason=str(error))
            with self._database.session_scope() as session:
                deliveries.release(session, claim, wait_s=KEYLESS_S)
            return
        made = self._send(claim, key)
        log.info(
            "webhook_tried",
            webhook_id=claim.webhook_id,
            delivery_id=claim.delivery_id,
            status=made.status,
            error=made.error,
            took_ms=made.took_ms,
        )
        with self._database.session_scope() as session:
            if made.status == 410:
                deliveries.disable(session, claim.webhook_id)
            deliveries.conclude(session, claim, made)

    def _send(self, claim: Claim, key: str) -> Try:
        """Send it once. Whatever comes of that is a try: what failed without one would be sent again for ever."""
        # The database's time: that of this host may be off by more than a receiver puts up with.
        at = claim.claimed_at
        began_at, status, error = clock(), None, None
        try:
            body, headers = _signed(claim, key, at)
            status = self._outbound.post(claim.url, body, headers)
            error = _refusal(status)
        except NotSentError as failed:
            error = str(failed)
        except Exception as failed:  # a defect of ours, told in the log with its traceback
            log.exception("webhook_failed", webhook_id=claim.webhook_id, delivery_id=claim.delivery_id)
            error = f"it cannot be sent: {type(failed).__name__}: {failed}"[:MOST_TOLD]
        return Try(at=at, took_ms=round((clock() - began_at) * 1000), status=status, error=error)

    def _forget(self) -> None:
        older_than = timedelta(days=self._settings.webhook_days)
        while not self._stopping.is_set():
            with self._database.session_scope() as session:
                if deliveries.forget(session, older_than=older_than, limit=FORGET_AT_ONCE) < FORGET_AT_ONCE:
                    return


def _signed(claim: Claim, key: str, at: datetime) -> tuple[bytes, dict[str, str]]:
    """Return a message's body and headers, as Standard Webhooks has them."""
    body = json.dumps(claim.payload, ensure_ascii=False, separators=(",", ":"))
    return body.encode(), {
        "Content-Type": "application/json",
        "User-Agent": f"rankzero/{version('rankzero')}",
        "webhook-id": claim.message_id,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": Webhook(key).sign(claim.message_id, at, body),
    }


def _refusal(status: int) -> str | None:
    """Return why an answer does not count as delivered; None where it does."""
    if 200 <= status < 300:
        return None
    if 300 <= status < 400:
        return f"answered {status}; redirects are not followed: register the address that it leads to"
    return f"answered {status}" + ("; the webhook was disabled" if status == 410 else "")
