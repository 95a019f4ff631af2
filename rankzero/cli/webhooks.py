"""The commands about webhooks: which there are, what each was told, adding, changing, testing and deleting one."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from rankzero.cli.console import Console
from rankzero.cli.options import Json, Url, connect, leads_on
from rankzero.cli.output import print_answer, print_found
from rankzero.cli.spec_file import parse_labels
from rankzero.cli.tables import minute, table
from rankzero.errors import UsageError
from rankzero.kept import KEPT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rankzero.webhooks import Delivery, Webhook

ALL = "all"
"""What stands for every topic."""
WebhookId = Annotated[int, typer.Argument(metavar="WEBHOOK", help="Id of the webhook.")]

webhooks = typer.Typer(
    help="Show webhooks; add, change, test and delete one, see what it was told. Takes the role admin."
)


def add_webhook_commands(app: typer.Typer) -> None:
    """Add these commands to the application."""
    app.add_typer(webhooks, name="webhooks")


@webhooks.callback(invoke_without_command=True)
def list_webhooks(context: typer.Context, *, as_json: Json = False, url: Url = None) -> None:
    """Show webhooks, or with a command act on one."""
    if leads_on(context):
        return
    with connect(url) as client:
        print_found(list(client.webhooks()), _print_webhooks, as_json=as_json)


@webhooks.command("add")
def add_webhook(
    target: Annotated[str, typer.Argument(metavar="URL", help="Where messages are sent to.")],
    topic: Annotated[
        list[str] | None, typer.Option(help="Only of this topic, such as job.succeeded; repeat it.")
    ] = None,
    label: Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="Only of jobs with this label.")] = None,
    description: Annotated[str | None, typer.Option(help="What it is for.")] = None,
    *,
    as_json: Json = False,
    url: Url = None,
) -> None:
    """Register a URL to be told of what happens to jobs, and print its key: it is shown this once."""
    labels = parse_labels(label or [])
    with connect(url) as client:
        made = client.create_webhook(target, topics=topic or (), labels=labels, description=description)
    # The key alone on standard output, as a token.
    print_answer(made, made.key, as_json=as_json)
    print(f"webhook {made.id} is told; its messages are signed with this key, shown this once", file=sys.stderr)


@webhooks.command("change")
def change_webhook(  # noqa: PLR0917  # Typer passes by name; each is an option of the command
    webhook_id: WebhookId,
    to: Annotated[
        str | None, typer.Option("--to", metavar="URL", help="Where messages are sent to from now on.")
    ] = None,
    topic: Annotated[
        list[str] | None,
        typer.Option(help="Only of this topic, in place of those before; repeat it. `all`: of every one."),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Only of jobs with this label, in place of those before."),
    ] = None,
    no_labels: Annotated[bool, typer.Option("--no-labels", help="Of jobs with any labels.")] = False,
    description: Annotated[str | None, typer.Option(help="What it is for; an empty one takes it away.")] = None,
    enabled: Annotated[bool | None, typer.Option("--enable/--disable", help="Whether it is told anything now.")] = None,
    *,
    as_json: Json = False,
    url: Url = None,
) -> None:
    """Change a webhook; what is not named stays."""
    if no_labels and label:
        raise UsageError("--label and --no-labels: take one of them")
    labels = {} if no_labels else parse_labels(label or [])
    topics = [] if topic == [ALL] else topic or None
    with connect(url) as client:
        changed = client.change_webhook(
            webhook_id,
            url=to,
            topics=topics,
            labels=labels,
            description=KEPT if description is None else description or None,
            enabled=enabled,
        )
    standing = "is told" if changed.enabled else "is told nothing: it is disabled"
    print_answer(changed, f"webhook {changed.id} {standing}, at {changed.url}", as_json=as_json)


@webhooks.command("rotate")
def rotate_key(webhook_id: WebhookId, *, as_json: Json = False, url: Url = None) -> None:
    """Give a webhook another key, which signs every message from now on, and print it: it is shown this once."""
    with connect(url) as client:
        made = client.rotate_webhook_key(webhook_id)
    print_answer(made, made.key, as_json=as_json)
    print(f"messages of webhook {made.id} are signed with this key from now on, shown this once", file=sys.stderr)


@webhooks.command("test")
def send_test(webhook_id: WebhookId, *, as_json: Json = False, url: Url = None) -> None:
    """Have a test message sent."""
    with connect(url) as client:
        delivery = client.test_webhook(webhook_id)
    see = f"see what becomes of it: rankzero webhooks deliveries {webhook_id}"
    print_answer(delivery, f"message {delivery.message_id} is to be sent; {see}", as_json=as_json)


@webhooks.command("deliveries")
def deliveries(
    webhook_id: WebhookId,
    limit: Annotated[int, typer.Option(min=1, help="Most messages to show.")] = 20,
    *,
    as_json: Json = False,
    url: Url = None,
) -> None:
    """Show what a webhook was told or is to be told, the newest first, and what it answered."""
    with connect(url) as client:
        print_found(list(client.deliveries(webhook_id, limit=limit)), _print_deliveries, as_json=as_json)


@webhooks.command("redeliver")
def redeliver(
    webhook_id: WebhookId,
    delivery_id: Annotated[int, typer.Argument(metavar="MESSAGE", help="Id of the message, as `deliveries` lists it.")],
    *,
    as_json: Json = False,
    url: Url = None,
) -> None:
    """Have a message sent once more, whatever became of it."""
    with connect(url) as client:
        delivery = client.redeliver(webhook_id, delivery_id)
    see = f"see what becomes of it: rankzero webhooks deliveries {webhook_id}"
    print_answer(delivery, f"message {delivery.message_id} is to be sent again; {see}", as_json=as_json)


@webhooks.command("delete")
def delete_webhook(webhook_id: WebhookId, *, as_json: Json = False, url: Url = None) -> None:
    """Delete a webhook; what it has not been told yet is given up."""
    with connect(url) as client:
        client.delete_webhook(webhook_id)
    print_answer({"removed": webhook_id}, f"webhook {webhook_id} is deleted", as_json=as_json)


def _print_webhooks(console: Console, found: "Sequence[Webhook]") -> None:
    listed = table("ID", "URL", "TOPICS", "LABELS", "STANDING", "FOR")
    for each in found:
        labels = ", ".join(f"{key}={value}" for key, value in each.labels.items())
        standing = "told" if each.enabled else "disabled"
        topics = ", ".join(each.topics) or "all"
        listed.add_row(str(each.id), escape(each.url), topics, escape(labels), standing, escape(each.description or ""))
    console.print(listed if found else "no webhooks; rankzero webhooks add URL adds one", highlight=False)


def _print_deliveries(console: Console, found: "Sequence[Delivery]") -> None:
    listed = table("ID", "TOPIC", "JOB", "WRITTEN (UTC)", "STANDING", "TRIES", "LAST ANSWER")
    for each in found:
        last = each.log[-1] if each.log else None
        answer = "" if last is None else last.error or str(last.status)
        job = "" if each.job_id is None else str(each.job_id)
        cells = (str(each.id), each.topic, job, minute(each.created_at), each.status.replace("_", " "))
        listed.add_row(*cells, str(len(each.log)), escape(answer))
    console.print(listed if found else "it was told nothing yet", highlight=False)
