"""The flags that describe a job, the same for each command that takes a whole spec."""

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from rankzero.cli.options import (
    DEVICE_FORMS,
    Settings,
    StartFrom,
    StartMode,
    parse_duration,
    parse_start,
)
from rankzero.cli.spec_file import here, merged, parse_device, parse_labels, parse_settings, read_spec

File = Annotated[Path | None, typer.Argument(help="Job spec as YAML or JSON; `-` reads standard input.")]


def takes_a_spec(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command every parameter of `described`, in place of its first one, the spec."""
    flags = inspect.signature(described).parameters
    _spec, *own = inspect.signature(command).parameters.values()

    @functools.wraps(command)
    def run(**given: Any) -> None:
        spec = described(**{name: given.pop(name) for name in flags})
        command(spec, **given)

    # What Typer reads the options from.
    run.__signature__ = inspect.Signature([*flags.values(), *own])  # type: ignore[attr-defined]  # mypy knows no such attribute
    run.__annotations__ = described.__annotations__ | command.__annotations__
    return run


def described(  # noqa: PLR0917  # Typer passes by name; each is an option of the command
    file: File = None,
    model: Annotated[str | None, typer.Option(help="Model, such as resnet50.")] = None,
    data: Annotated[str | None, typer.Option(help="Data set by name, or an image folder (with a slash in it).")] = None,
    device: Annotated[str | None, typer.Option(help=f"Devices: {DEVICE_FORMS}.")] = None,
    nproc_per_node: Annotated[int | None, typer.Option(help='Ranks for --device "cpu".')] = None,
    host: Annotated[str | None, typer.Option(help="Only on the host of this name.")] = None,
    nodes: Annotated[int | None, typer.Option(help="Hosts that train together, each with --device.")] = None,
    epochs: Annotated[int | None, typer.Option(help="Passes over the training set.")] = None,
    batch: Annotated[int | None, typer.Option(help="Global batch in samples.")] = None,
    lr: Annotated[float | None, typer.Option(help="Learning rate at the start.")] = None,
    recipe: Annotated[str | None, typer.Option(help="How to build model, data, loss and metrics.")] = None,
    settings: Settings = None,
    name: Annotated[str | None, typer.Option(help="A name for people.")] = None,
    label: Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="A label; repeat it.")] = None,
    user: Annotated[str | None, typer.Option(help="Whom it is for; else who is logged in.")] = None,
    priority: Annotated[int | None, typer.Option(help="0 to 100; higher starts first.")] = None,
    preemptible: Annotated[
        bool | None,
        typer.Option("--preemptible/--not-preemptible", help="Whether it may be stopped for one of higher priority."),
    ] = None,
    max_retries: Annotated[int | None, typer.Option(help="How often a lost run is tried again.")] = None,
    time_limit: Annotated[
        str | None, typer.Option(metavar="TIME", help="How long it may train in all, such as 90s, 30m, 1.5h, 2d.")
    ] = None,
    hang_limit: Annotated[
        str | None, typer.Option(metavar="TIME", help="How long a rank may be without progress.")
    ] = None,
    checkpoint_root: Annotated[
        str | None, typer.Option(metavar="FOLDER|URL", help="Where its checkpoints are copied to, for other hosts.")
    ] = None,
    start_from: StartFrom = None,
    start_mode: StartMode = None,
) -> dict[str, Any]:
    """Return the spec in a file with what flags say on top. Raises UsageError."""
    return merged(
        read_spec(file),
        job={
            "device": parse_device(device),
            "nproc_per_node": nproc_per_node,
            "host": host,
            "nodes": nodes,
            "name": name,
            "labels": parse_labels(label or []),
            "user": user,
            "priority": priority,
            "preemptible": preemptible,
            "max_retries": max_retries,
            "time_limit_s": parse_duration(time_limit),
            "hang_limit_s": parse_duration(hang_limit),
            "checkpoint_root": checkpoint_root,
            "start_from": parse_start(start_from, start_mode),
        },
        train={"model": model, "data": here(data), "epochs": epochs, "batch": batch, "lr": lr, "recipe": recipe},
        settings=parse_settings(settings or []),
    )
