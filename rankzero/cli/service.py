"""The commands that run a service on this machine: up and demo."""

import signal
import time
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from rankzero.cli import exits
from rankzero.cli.console import Console
from rankzero.cli.options import Json
from rankzero.cli.output import EXAMPLE, print_json

if TYPE_CHECKING:
    from rankzero.embedded import EmbeddedService


def add_service_commands(app: typer.Typer) -> None:
    """Add these commands to the application."""
    for command in (up, demo):
        app.command()(command)


def up(
    port: Annotated[int, typer.Option(help="Port of the API on 127.0.0.1; 0 takes a free one.")] = 8000,
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder for database, runs and logs; else ~/.local/share/rankzero.")
    ] = None,
    simulated_devices: Annotated[
        int, typer.Option(min=0, max=1024, help="CUDA devices to pretend, on a machine with none; they use the CPU.")
    ] = 0,
    *,
    as_json: Json = False,
) -> None:
    """Run the whole service on this machine until Ctrl-C, with no server installed.

    Ctrl-C ends running jobs too: they are queued again, and go on from their last checkpoint after the next start.
    """
    from rankzero.embedded import EmbeddedService, default_data_dir

    console = Console(stderr=as_json)
    service = EmbeddedService(
        data_dir=data_dir or default_data_dir(),
        port=port,
        simulated_devices=simulated_devices or None,
        say=lambda line: console.print(line, highlight=False, markup=False, soft_wrap=True),
    )
    _end_as_on_ctrl_c()
    try:
        with service:
            if as_json:
                where = {"url": service.url, "dashboard": service.find_dashboard()}
                print_json(where | {"data_dir": str(service.data_dir), "logs": str(service.logs)})
            else:
                _print_welcome(console, service)
            service.run()
    except KeyboardInterrupt:
        # Asked for, in the way this command's help says: not a failure.
        raise typer.Exit(exits.OK) from None


def demo(
    keep: Annotated[bool, typer.Option("--keep", help="Leave the service up afterwards, until Ctrl-C.")] = False,
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder for database, runs and logs; else a temporary one.")
    ] = None,
    *,
    as_json: Json = False,
) -> None:
    """Train one real job on two ranks through the whole service, and check what comes back.

    The temporary folder, with the checkpoint in it, stays until the next demo.
    """
    from rankzero.demo import demo_folder, print_result, run_demo
    from rankzero.embedded import EmbeddedService

    # With --json, what is for people goes to standard error.
    console = Console(stderr=as_json)
    started = time.monotonic()
    service = EmbeddedService(
        data_dir=data_dir or demo_folder(),
        simulated_devices=2,
        hide_gpus=True,
        say=lambda line: console.print(line, highlight=False, markup=False, soft_wrap=True),
    )
    _end_as_on_ctrl_c()
    done = False
    try:
        console.print(f"starting the service in {service.data_dir}", highlight=False, soft_wrap=True)
        with service:
            result = run_demo(service, console, started=started)
            if as_json:
                print_json(result.document())
            else:
                print_result(console, result)
            done = True
            if keep:
                _print_welcome(console, service)
                service.run()
    except KeyboardInterrupt:
        raise typer.Exit(exits.OK if done else exits.INTERRUPTED) from None


def _print_welcome(console: Console, service: "EmbeddedService") -> None:
    console.print(f"RankZero is up at {service.url}; Ctrl-C ends it", highlight=False)
    if dashboard := service.find_dashboard():
        console.print(f"  look  {dashboard}", highlight=False, soft_wrap=True)
    console.print(f"  data  {service.data_dir}\n  logs  {service.logs}", highlight=False, soft_wrap=True)
    url = "" if service.url.endswith(":8000") else f"RANKZERO_URL={service.url} "
    console.print(f"  try   {url}rankzero submit {EXAMPLE}", highlight=False, soft_wrap=True)


def _end_as_on_ctrl_c() -> None:
    """Let SIGTERM and a closed terminal end this process in the same order as Ctrl-C."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # Said for SIGINT too: a shell starts its background jobs with it ignored.
        signal.signal(number, interrupt)
