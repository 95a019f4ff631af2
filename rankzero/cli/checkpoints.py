"""The command for the checkpoints of a job: list, download, remove."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer
from rich.markup import escape

from rankzero.cli.console import Console
from rankzero.cli.options import JobId, Json, Url, connect, parse_id
from rankzero.cli.output import in_figures, print_answer, print_json
from rankzero.cli.tables import minute, size_of, table
from rankzero.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rankzero.models import Checkpoint
    from rankzero.resources.checkpoints import Which


def add_checkpoint_commands(app: typer.Typer) -> None:
    """Add these commands to the application."""
    app.command()(checkpoints)


def checkpoints(
    job_id: JobId,
    download: Annotated[
        str | None, typer.Option(metavar="best|last|CHECKPOINT", help="Download this one, and check its SHA-256.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Where to; else its own name, here.")
    ] = None,
    delete: Annotated[
        int | None, typer.Option(metavar="CHECKPOINT", help="Remove the one of this id, with its copy.")
    ] = None,
    keep: Annotated[
        list[str] | None, typer.Option(metavar="best|last", help="Remove all but this one; repeat it to keep both.")
    ] = None,
    *,
    as_json: Json = False,
    url: Url = None,
) -> None:
    """List the checkpoints of a job, download one, or remove some.

    What a run may still need is never removed.
    """
    if sum(each is not None for each in (download, delete, keep or None)) > 1:
        raise UsageError("--download, --delete, --keep: one at a time")
    if output is not None and download is None:
        raise UsageError("--output says where --download puts the file")
    with connect(url) as client:
        if download is not None:
            which = parse_id(download)
            of = download if which is None else which  # the client says what else it may be
            file = client.download_checkpoint(job_id, cast("Which", of), output or Path())
            print_answer({"file": str(file)}, str(file), as_json=as_json)
        elif delete is not None:
            client.delete_checkpoint(job_id, delete)
            print_answer({"removed": delete}, f"checkpoint {delete} is removed", as_json=as_json)
        elif keep:
            pruned = client.prune_checkpoints(job_id, keep=cast("Sequence[Literal['best', 'last']]", keep))
            removed, kept = (
                ", ".join(str(each.id) for each in some) or "none" for some in (pruned.removed, pruned.kept)
            )
            print_answer(pruned, f"removed: {removed}; kept: {kept}", as_json=as_json)
        else:
            found = list(client.checkpoints(job_id))
            if as_json:
                print_json(found)
            else:
                _print_table(Console(), job_id, found)


def _print_table(console: Console, job_id: int, found: "Sequence[Checkpoint]") -> None:
    if not found:
        print(f"job {job_id} has no checkpoint")
        return
    listed = table("CHECKPOINT", "STEP", "EPOCH", "SIZE", "SAVED (UTC)", "HOST", "VALUES")
    for each in found:
        name = f"{each.id} best" if each.best else str(each.id)
        cells = (name, str(each.step), str(each.epoch), size_of(each.size_bytes), minute(each.created_at))
        host = f"{each.host_name}, copied" if each.copy_url else each.host_name
        listed.add_row(*cells, escape(host), escape(in_figures(each.values)))
    console.print(listed, highlight=False)
