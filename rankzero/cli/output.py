"""What the command prints: one JSON document, or tables and lines for people."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from rich.markup import escape

from rankzero.cli.console import Console, plain
from rankzero.cli.history import name_of_failure, times_of, warnings_among
from rankzero.cli.tables import table
from rankzero.cli.wording import in_words, since

if TYPE_CHECKING:
    from pydantic import BaseModel

    from rankzero.fleet import Plan
    from rankzero.models import Attempt, Checkpoint, Device, Event, Failure, Job

Found = TypeVar("Found", bound="BaseModel | Sequence[BaseModel]")

EXAMPLE = "--model resnet18 --data digits --set image_size=32 --epochs 5 --lr 0.05"
"""What to submit first: a minute on a CPU."""
HEADINGS = ("ID", "STATE", "NAME", "DEVICE", "LINE", "PROGRESS", "AGE", "NOTE")
"""Of a table of jobs."""
COLOURS = {"succeeded": "green", "failed": "red", "cancelled": "yellow", "running": "cyan", "starting": "cyan"}


def print_json(document: BaseModel | Sequence[BaseModel] | Mapping[str, Any]) -> None:
    """Print one JSON document and nothing else; models keep every field that the service sent."""
    if isinstance(document, Mapping):
        content: Any = document
    elif isinstance(document, Sequence):
        content = [item.model_dump(mode="json") for item in document]
    else:
        content = document.model_dump(mode="json")
    # ASCII, so that no terminal's encoding can stop it half-way.
    sys.stdout.write(json.dumps(content, indent=2) + "\n")
    sys.stdout.flush()


def print_answer(document: BaseModel | Mapping[str, Any], line: str, *, as_json: bool) -> None:
    """Print what was done: for programs a document, for people a line."""
    if as_json:
        print_json(document)
    else:
        print(plain(line))


def print_found(found: Found, print_table: Callable[[Console, Found], None], *, as_json: bool) -> None:
    """Print what there is: for programs a document, for people a table."""
    if as_json:
        print_json(found)
    else:
        print_table(Console(), found)


def print_jobs(console: Console, jobs: Iterable[Job]) -> None:
    """Print a table of jobs."""
    listed = table(*HEADINGS)
    for job in jobs:
        ahead, name, device, *rest, note = cells_of(job)
        listed.add_row(ahead, in_colour(job.state), escape(name), escape(device), *rest, escape(note))
    console.print(listed)


def cells_of(job: Job) -> tuple[str, str, str, str, str, str, str]:
    """Return what a table of jobs has of one, as text, without its state, which has a colour."""
    note = job.reason or (job.failure.message if job.failure and job.state == "failed" else "")
    place = "" if job.position is None else str(job.position)
    return str(job.id), job.name, job.device, place, progress_of(job), age_of(job), note


def print_job(
    console: Console,
    job: Job,
    *,
    attempts: Sequence[Attempt] = (),
    checkpoints: Sequence[Checkpoint] = (),
    events: Iterable[Event] = (),
) -> None:
    """Print all that matters about one job; of its events, the last few warnings."""
    lines = [
        ("job", f"{job.id}  {escape(job.name)}"),
        ("state", in_colour(job.state) + (f"  ({escape(job.reason)})" if job.reason else "")),
        *([("line", place_of(job.position, job.predicted_start))] if job.position is not None else []),
        ("device", f"{escape(devices_of(job))}  ({job.world_size} {'rank' if job.world_size == 1 else 'ranks'})"),
        ("train", escape(training_of(job))),
        ("progress", progress_of(job)),
        ("priority", f"{job.priority}{', preemptible' if job.spec.get('preemptible') else ''}"),
        ("created", since(job.created_at)),
        *times_of(job, attempts),
    ]
    if job.progress is not None and job.progress.values:
        lines.append(("metrics", escape(in_figures(job.progress.values))))
    if job.user is not None:
        lines.append(("user", escape(job.user)))
    if job.labels:
        lines.append(("labels", escape(labels_of(job))))
    if job.parent_id is not None:
        lines.append(("parent", parent_of(job)))
    lines += [(f"attempt {attempt.number}", escape(describe_attempt(attempt))) for attempt in attempts]
    for checkpoint in checkpoints:
        name = f"checkpoint {checkpoint.id} ({'best, ' if checkpoint.best else ''}step {checkpoint.step})"
        copied = f", copied to {checkpoint.copy_url}" if checkpoint.copy_url else ""
        lines.append((name, escape(f"{checkpoint.path} on {checkpoint.host_name}{copied}")))
    lines += [(event.detail["level"], escape(str(event.detail["message"]))) for event in warnings_among(events)]
    if job.failure is not None and job.state != "succeeded":
        lines.append((name_of_failure(job, attempts), escape(describe_failure(job.failure))))
    width = max(len(name) for name, _ in lines)
    for name, text in lines:
        console.print(f"{name:<{width}}  {text}", soft_wrap=True, highlight=False)
    if job.failure is not None and job.state == "failed":
        print_evidence(console, job.failure)


def print_evidence(console: Console, failure: Failure) -> None:
    """Print where a rank stood when it failed, and the last that it printed."""
    stack = failure.traceback if failure.cause in ("exception", "hang") else None
    if stack:
        console.print(stack.rstrip("\n"), markup=False, highlight=False, soft_wrap=True)
    # A rank prints its traceback too: once is enough.
    if failure.log_tail and not (stack and stack.rstrip().rpartition("\n")[2] in failure.log_tail):
        of = "of the launcher's log" if failure.rank is None else f"of rank {failure.rank}'s log"
        console.print(f"the last lines {of}:", highlight=False)
        console.print(failure.log_tail.rstrip("\n"), markup=False, highlight=False, soft_wrap=True)


def print_plan(console: Console, plan: Plan) -> None:
    """Print what would become of a job."""
    if plan.starts_now:
        lines = [f"starts now on {each.host}: {','.join(each.devices)}" for each in plan.placements]
    else:
        reason = plan.reason or "for its turn"
        lines = [
            reason if reason.startswith("waits ") else f"waits: {reason}",
            f"its place in the line: {place_of(plan.position, plan.predicted_start)}",
        ]
    share = "" if plan.batch_per_rank is None else f", {plan.batch_per_rank} samples of each batch on each"
    lines.append(f"{plan.world_size} {'rank' if plan.world_size == 1 else 'ranks'}{share}")
    for host in plan.hosts:
        closed = f"; it is {host.closed}" if host.closed else ""
        lines.append(f"could run on {host.host}: {len(host.free)} of {host.devices} devices free{closed}")
    lines += [f"warning: {warning}" for warning in plan.warnings]
    console.print("\n".join(lines), highlight=False, markup=False, soft_wrap=True)


def describe_failure(failure: Failure) -> str:
    """Return why an attempt failed and on which rank, unless any rank might have been the first to see it."""
    is_named = failure.cause in ("config", "data") or failure.message.startswith(f"rank {failure.rank} ")
    where = "" if failure.rank is None or is_named else f" on rank {failure.rank}"
    return f"{failure.cause}{where}: {failure.message.removeprefix(f'{failure.cause}: ')}"


def describe_attempt(attempt: Attempt) -> str:
    """Return in words how an attempt went and where."""
    placed = [f"{_described(placement.devices)} on {placement.host}" for placement in attempt.placements]
    is_told = attempt.stop_message and attempt.outcome != "succeeded"
    why = f"; {attempt.stop_message}" if is_told else ""
    return f"{attempt.outcome or 'under way'}, {', '.join(placed)}{why}"


def _described(devices: Sequence[Device]) -> str:
    """Their names, and for GPUs the driver's number and UUID: a worker may number them otherwise."""
    if not any(device.uuid for device in devices):
        return device_names(devices)
    return ", ".join(f"{device.name} ({_by_the_driver(device)})" for device in devices)


def _by_the_driver(device: Device) -> str:
    return ", ".join([*([] if device.driver_index is None else [f"GPU {device.driver_index}"]), str(device.uuid)])


def device_names(devices: Sequence[Device]) -> str:
    """Return the names of an attempt's devices, and whether they are simulated."""
    names = ",".join(device.name for device in devices)
    return f"{names} (simulated)" if any(device.simulated for device in devices) else names


def devices_of(job: Job) -> str:
    """Return the devices that a job asked for, and on how many hosts."""
    nodes, host = job.spec.get("nodes") or 1, job.spec.get("host")
    where = f" on each of {nodes} hosts" if nodes > 1 else f" on {host}" if host else ""
    return f"{job.device}{where}"


def place_of(position: int | None, predicted_start: datetime | None) -> str:
    """Return a place in the line in words, and when it comes to an end, as far as that can be foretold."""
    if predicted_start is None:
        return f"{position}; its start cannot be foretold"
    left_s = (predicted_start - datetime.now(UTC)).total_seconds()
    return f"{position}; starts in about {in_words(left_s)}" if left_s >= 1 else f"{position}; starts soon"


def labels_of(job: Job) -> str:
    """Return a job's labels in a line."""
    return ", ".join(f"{key}={value}" for key, value in job.labels.items())


def parent_of(job: Job) -> str:
    """Return which job it came from, and what it started with."""
    start = job.spec.get("start_from") or {}
    if job.parent_checkpoint_id is None:
        return f"cloned from job {job.parent_id}"
    what = "goes on from" if start.get("mode") == "resume" else "begins with the weights of"
    of = f"checkpoint {job.parent_checkpoint_id} of job {start.get('job', job.parent_id)}"
    return f"job {job.parent_id}; {what} {of}"


def training_of(job: Job) -> str:
    """Return in a few words what a job trains, or which program it runs."""
    train = job.spec["train"]
    options = train.get("options") or {}
    if train.get("recipe") == "script":
        program = [options["script"]] if options.get("script") else ["-m", str(options.get("module"))]
        return shlex.join(["python", *program, *map(str, options.get("args") or ())])
    return f"{train['model']} on {train['data']}, {train['epochs']} epochs, {batch_of(job)}"


def progress_of(job: Job) -> str:
    """Return in a few words how far a job is."""
    progress = job.progress
    if progress is None or not (progress.total_steps or progress.step):
        return "-"
    if not progress.total_steps:  # a program of the user's own: it alone knows how many there will be
        return f"step {progress.step}"
    return f"{(progress.step or 0) / progress.total_steps:.0%} of {progress.total_steps} steps"


def in_figures(values: Mapping[str, float | None]) -> str:
    """Return metrics in a line, those of training without their prefix."""
    return "  ".join(f"{name.removeprefix('train/')} {figure(value)}" for name, value in values.items())


def figure(value: float | None) -> str:
    """Return a value of a metric, short enough for a table."""
    if value is None:
        return "not finite"
    is_usual = value == 0 or 1e-3 <= abs(value) < 1e6
    return f"{value:.4f}" if is_usual else f"{value:.4g}"


def batch_of(job: Job) -> str:
    """Return a job's batch in words: as it was asked for, or once it trains as it is."""
    asked, progress = job.spec["train"]["batch"], job.progress
    if progress is None or progress.batch is None:
        return f"batch {asked}"
    words = [f"batch {progress.batch}"]
    if asked != progress.batch:
        words[0] += f" (for {asked})"
    if progress.batch_per_rank not in (None, progress.batch):
        words.append(f"{progress.batch_per_rank} per rank")
    if (progress.accumulate or 1) > 1:
        words.append(f"{progress.accumulate} batches per step")
    return ", ".join(words)


def age_of(job: Job) -> str:
    """Return how long ago a job was submitted."""
    return in_words((datetime.now(UTC) - job.created_at).total_seconds())


def in_colour(state: str) -> str:
    """Return a state with rich's markup."""
    colour = COLOURS.get(state)
    return f"[{colour}]{state}[/]" if colour else state
