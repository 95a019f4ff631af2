"""The command that says why a job is where it is: what it waits for, what it does, or why it failed."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import typer

from rankzero.cli.advice import advice_on
from rankzero.cli.console import Console
from rankzero.cli.history import times_of
from rankzero.cli.options import JobId, Json, Url, connect
from rankzero.cli.output import (
    describe_attempt,
    describe_failure,
    in_colour,
    place_of,
    print_evidence,
    print_json,
    progress_of,
)
from rankzero.cli.wording import in_words, since

if TYPE_CHECKING:
    from rankzero.models import Attempt, Job


def add_why_command(app: typer.Typer) -> None:
    """Add this command to the application."""
    app.command()(why)


@dataclass
class Account:
    """Why a job is where it is."""

    because: list[str] = field(default_factory=list)
    to_do: list[str] = field(default_factory=list)


def why(job_id: JobId, *, as_json: Json = False, url: Url = None) -> None:
    """Say what a job waits for and when it will start, or why it failed: the rank, its traceback, and what to do."""
    with connect(url) as client:
        job = client.get(job_id)
        attempts = client.attempts(job_id)
    account = account_for(job, attempts)
    if as_json:
        print_json(document_of(job, account))
        return
    console = Console()
    console.print(f"job {job.id} is {in_colour(job.state)}", highlight=False)
    for line in account.because:
        console.print(f"  {line}", highlight=False, markup=False, soft_wrap=True)
    if job.state == "failed" and job.failure is not None:
        print_evidence(console, job.failure)
    for line in account.to_do:
        console.print(f"what to do: {line}", highlight=False, markup=False, soft_wrap=True)


def account_for(job: "Job", attempts: "Sequence[Attempt]") -> Account:
    """Return why a job is where it is."""
    if job.state == "queued":
        return _waiting(job)
    if job.state == "failed":
        return _failed(job, attempts)
    account = Account([f"{name} {text}" for name, text in times_of(job, attempts)])
    if job.state == "paused":
        account.to_do.append(f"rankzero resume {job.id} lets it go on from its last checkpoint")
    elif not job.is_over:
        account.because += [describe_attempt(attempt) for attempt in attempts[-1:]]
        if job.intent != "run":
            account.because.append(f"it was asked to {job.intent}, and does so once it has ended or saved")
        elif job.state == "running":
            account.because.append(f"it is at {progress_of(job)}" if job.progress else "it has not told of a step yet")
    return account


def document_of(job: "Job", account: Account) -> dict[str, Any]:
    """Return the same for programs."""
    whole = job.model_dump(mode="json")
    fields = ("state", "reason", "position", "predicted_start", "waits_for", "not_before", "failure")
    return (
        {"id": job.id} | {name: whole[name] for name in fields} | {"because": account.because, "to_do": account.to_do}
    )


def _waiting(job: "Job") -> Account:
    account = Account()
    reason = job.reason or "waits for the next plan, which a worker makes within seconds"
    account.because.append(reason if reason.startswith("waits ") else f"waits: {reason}")
    for each in job.waits_for or ():
        if f"{each.device} (job {each.job_id})" not in reason:  # which names the first few
            account.because.append(f"{each.device} on {each.host}: job {each.job_id}")
    if job.position is not None:
        account.because.append(f"its place in the line: {place_of(job.position, job.predicted_start)}")
    if job.not_before is not None and (left_s := (job.not_before - datetime.now(UTC)).total_seconds()) > 0:
        account.because.append(f"it rests for {in_words(left_s)} more after an attempt was lost")
    if job.queued_at is not None:
        account.because.append(f"in the line since {since(job.queued_at)}")
    if job.failure is not None:
        account.because.append(f"its attempt before: {describe_failure(job.failure)}")
    if job.position is None and job.reason is None:
        account.to_do.append("if that stays so, rankzero doctor says whether a worker is there")
    elif job.waits_for:
        account.to_do.append(f"rankzero set {job.id} priority=N moves it in the line; its priority is {job.priority}")
    else:
        account.to_do.append(
            f"rankzero hosts shows what there is; rankzero clone {job.id} --device … asks for other devices"
        )
    return account


def _failed(job: "Job", attempts: "Sequence[Attempt]") -> Account:
    account = Account()
    if job.failure is None:
        return account
    account.because.append(describe_failure(job.failure))
    if attempts and attempts[-1].placements:
        account.because.append(f"attempt {attempts[-1].number}: {describe_attempt(attempts[-1])}")
    if len(attempts) > 1:
        lost = sum(attempt.outcome == "lost" for attempt in attempts)
        account.because.append(f"{len(attempts)} attempts, {lost} of them lost by the machines")
    if job.finished_at is not None:
        account.because.append(f"ended {since(job.finished_at)}")
    account.to_do.append(advice_on(job.failure.cause, job.id))
    return account
