"""The commands about webhooks: which there are, what each was told, adding, testing and deleting one."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from rankzero.cli.console import Console
from rankzero.cli.options import Json, Url, connect, leads_on
from rankzero.cli.output import print_answer, print_found
from rankzero.cli.spec_file import parse_labels
from rankzero.cli.tables import minute, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rankzero.webhooks import Delivery, Webhook

WebhookId = Annotated[int, typer.Argument(metavar="WEBHOOK", help="Id of the webhook.")]

webhooks = typer.Typer(help="Show webhooks; add, test and delete one, and see what it was told. Takes the role admin.")


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
