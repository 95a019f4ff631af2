"""The command `python -m trainer.bench`: an epoch of one training on the devices there are, beside a plain loop."""

import argparse
import json
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict

from rich.console import Console
from rich.table import Table

from trainer.bench.lines import Line, Measured, Result, lines
from trainer.errors import ConfigError, DataError, with_cause
from trainer.run_dir import EXIT_USAGE
from trainer.terminal import say
from trainer.trials import status_of, temporary_folder

_SIZES = {"cpu": ("resnet18", 512, 32), "cuda": ("resnet50", 50_000, 256)}
"""Model, training images and batch: ResNet-50 on CIFAR-10, and what a machine without a GPU does in a few minutes."""

_USUAL_TIME = (
    "All lines take about two minutes on two idle cores of a CPU, with the sizes meant for them; the seconds of each "
    "are told on standard error once it is measured."
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    options = _parser().parse_args(arguments)
    try:
        return status_of(lambda: _measure(options))
    except (ConfigError, DataError) as error:
        say(with_cause(error.cause, str(error)))
        return EXIT_USAGE


def _measure(options: argparse.Namespace) -> int:
    import torch

    from trainer.bench.loops import ours, plain
    from trainer.bench.machine import machine
    from trainer.bench.workload import Workload, write_images

    gpus = torch.cuda.device_count()
    device: str = options.device or ("cuda" if gpus else "cpu")
    if device == "cuda" and gpus == 0:
        raise ConfigError('device: there is no CUDA device here; measure on the "cpu"')
    model, samples, batch = _SIZES[device]
    workload = Workload(
        model=options.model or model,
        samples=options.samples or samples,
        batch=options.batch or batch,
        is_synthetic=options.synthetic,
        epochs=options.epochs,
        num_workers=options.workers,
    )
    chosen = _chosen(lines(device, gpus=gpus), options.only)
    say(f"{workload}; lines: {', '.join(line.name for line in chosen)}")
    load = os.getloadavg()[0]
    results = []
    with temporary_folder("bench") as folder:
        images = write_images(workload, folder / "images")
        for line in chosen:
            found: dict[str, Measured] = {}
            for name, loop in (("ours", ours), ("plain", plain)) if not line.missing else ():
                say(f"{line.name}: {'RankZero' if name == 'ours' else 'the plain loop'} …")
                place = folder / "line"
                place.mkdir()
                found[name] = loop(workload, line, device=device, images=images, folder=place)
                shutil.rmtree(place)
            results.append(result := Result(line, **found))
            say(_shown(result))
    title = f"{workload}; {machine()}; load {load:.1f} before"
    if options.json:
        _print_json(title, results)
    else:
        _print_table(title, results)
    return 0


def _chosen(there: Sequence[Line], names: Sequence[str]) -> Sequence[Line]:
    if unknown := set(names) - {line.name for line in there}:
        known = ", ".join(repr(line.name) for line in there)
        raise ConfigError(f"only: there is no line {sorted(unknown)[0]!r} here; there are {known}")
    return [line for line in there if not names or line.name in names]


def _shown(result: Result) -> str:
    """Say what was measured of a line, in case its reader does not wait for the table."""
    name, ours, plain = result.line.name, result.ours, result.plain
    if ours is None or plain is None:
        return f"{name}: {result.line.missing}"
    return f"{name}: {ours.seconds:.2f} s/epoch, the plain loop {plain.seconds:.2f} s/epoch"


def _print_table(title: str, results: Sequence[Result]) -> None:
    table = Table("", "s/epoch", "plain loop s/epoch", "ratio", "accuracy", "plain loop accuracy", title=title)
    for line, ours, plain in ((result.line, result.ours, result.plain) for result in results):
        if ours is None or plain is None:
            table.add_row(line.name, line.missing)
            continue
        times = f"{ours.seconds:.2f}", f"{plain.seconds:.2f}", f"{ours.seconds / plain.seconds:.2f}"
        table.add_row(line.name, *times, f"{ours.accuracy:.3f}", f"{plain.accuracy:.3f}")
    Console(width=None if sys.stdout.isatty() else 140).print(table)


def _print_json(title: str, results: Sequence[Result]) -> None:
    rows = [
        {
            "line": asdict(result.line),
            "ours": asdict(result.ours) if result.ours else None,
            "plain_loop": asdict(result.plain) if result.plain else None,
            "ratio": result.ours.seconds / result.plain.seconds if result.ours and result.plain else None,
        }
        for result in results
    ]
    sys.stdout.write(json.dumps({"title": title, "lines": rows}, indent=2) + "\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m trainer.bench",
        description="Measure an epoch of one training on the devices there are, each beside a plain PyTorch loop.",
        epilog=_USUAL_TIME,
    )
    parser.add_argument("--device", choices=["cpu", "cuda"], help="default: the GPUs if there are any")
    parser.add_argument("--synthetic", action="store_true", help="drawn images instead of CIFAR-10's files")
    parser.add_argument("--model", help="a classifier of torchvision's (default: resnet50; on the CPU resnet18)")
    parser.add_argument("--samples", type=_count, help="training images (default: 50000; on the CPU 512)")
    parser.add_argument("--batch", type=_count, help="global batch (default: 256; on the CPU 32)")
    parser.add_argument("--epochs", type=_epochs, default=4, help="the first is not timed (default: %(default)s)")
    parser.add_argument("--workers", type=int, default=2, help="loader processes of each rank (default: %(default)s)")
    parser.add_argument(
        "--only", action="append", default=[], metavar="LINE", help='such as "DDP on 2"; may be repeated'
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    return parser


def _count(text: str) -> int:
    return _at_least(text, 8)  # 4 ranks of 2 samples, which BatchNorm needs


def _epochs(text: str) -> int:
    return _at_least(text, 2)


def _at_least(text: str, least: int) -> int:
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of {least} or more")
    return int(text)
