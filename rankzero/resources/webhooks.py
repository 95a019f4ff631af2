"""Webhooks: URLs that are told of what happens to jobs, and what became of each message to them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rankzero.connection import parsed
from rankzero.kept import KEPT, Kept
from rankzero.resources.resource import Resource
from rankzero.webhooks import Delivery, SignedWebhook, Webhook


class Webhooks(Resource):
    """The client's methods about webhooks; they take the role admin."""

    def webhooks(self) -> Iterator[Webhook]:
        """Yield every webhook, oldest first."""
        yield from self._connection.pages("/webhooks", Webhook, {})

    def webhook(self, webhook_id: int) -> Webhook:
        """Return one webhook."""
        return parsed(Webhook, self._connection.get(f"/webhooks/{webhook_id}"))

    def create_webhook(
        self,
        url: str,
        *,
        topics: Sequence[str] = (),
        labels: Mapping[str, str] | None = None,
        description: str | None = None,
        enabled: bool = True,
    ) -> SignedWebhook:
        """Have a URL told of these topics, or of all, of jobs that have all of these labels.

        Return it with the key that signs its messages, which is shown this once.
        """
        body = {"url": url, "topics": list(topics), "labels": labels or {}, "enabled": enabled}
        body |= {} if description is None else {"description": description}
        return parsed(SignedWebhook, self._connection.make("/webhooks", body, of="webhook"))

    def change_webhook(
        self,
        webhook_id: int,
        *,
        url: str | None = None,
        topics: Sequence[str] | None = None,
        labels: Mapping[str, str] | None = None,
        description: str | Kept | None = KEPT,
        enabled: bool | None = None,
    ) -> Webhook:
        """Change what is named of a webhook; `enabled=False` gives up what it was not told yet.

        `topics=[]` has it told of all, `labels={}` of every job, and `description=None` takes its description away.
        """
        given = {"url": url, "topics": topics, "labels": labels, "enabled": enabled}
        changes: dict[str, Any] = {field: value for field, value in given.items() if value is not None}
        if description is not KEPT:
            changes["description"] = description
        return parsed(Webhook, self._connection.send("PATCH", f"/webhooks/{webhook_id}", changes, of="change"))

    def delete_webhook(self, webhook_id: int) -> None:
        """Remove a webhook; what it was not told yet is given up."""
        self._connection.delete(f"/webhooks/{webhook_id}")

    def rotate_webhook_key(self, webhook_id: int) -> SignedWebhook:
        """Give a webhook another key, which signs every try from now on, and return it; it is shown this once."""
        return parsed(SignedWebhook, self._connection.send("POST", f"/webhooks/{webhook_id}/rotate"))

    def test_webhook(self, webhook_id: int) -> Delivery:
        """Have a webhook sent a test, and return its delivery."""
        return parsed(Delivery, self._connection.send("POST", f"/webhooks/{webhook_id}/test", once=True))

    def deliveries(self, webhook_id: int, *, limit: int | None = None) -> Iterator[Delivery]:
        """Yield what a webhook was told or is to be told, or the last `limit` of it, newest first, each with all of its
        tries."""
        yield from self._connection.pages(f"/webhooks/{webhook_id}/deliveries", Delivery, {}, limit=limit)

    def redeliver(self, webhook_id: int, delivery_id: int) -> Delivery:
        """Have a message sent once more, whatever became of it, with the same `message_id`."""
        path = f"/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver"
        return parsed(Delivery, self._connection.send("POST", path, once=True))
