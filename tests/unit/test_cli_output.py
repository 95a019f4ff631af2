"""How the command words durations, progress and results."""

import io
import re
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from rankzero.cli import exits, following, watching
from rankzero.cli.console import Console
from rankzero.cli.following import describe, follow, metrics_of
from rankzero.cli.history import describe_event
from rankzero.cli.metrics import course_of
from rankzero.cli.output import (
    batch_of,
    describe_failure,
    print_job,
    print_jobs,
    print_plan,
    progress_of,
    training_of,
)
from rankzero.cli.watching import table_of
from rankzero.cli.wording import in_words
from rankzero.errors import EmbeddedError, RankzeroError, RefusedError, UnreachableError, UsageError
from rankzero.fleet import Plan
from rankzero.models import Attempt, Checkpoint, Event, Failure, Job, Progress
from tests.unit.answered_job import AT, job


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-1, "0s"), (0.4, "0s"), (59.4, "59s"), (59.6, "1m 0s"), (61, "1m 1s"), (3600, "1h 0m"), (90_061, "1d 1h")],
)
def test_a_duration_shows_its_two_largest_units(seconds: float, words: str) -> None:
    assert in_words(seconds) == words


@pytest.mark.parametrize(
    ("asked", "progress", "words"),
    [
        (-1, None, "batch -1"),
        (64, {"batch_per_rank": 32}, "batch 64"),  # an older service tells no more
        (64, {"batch": 64, "batch_per_rank": 64, "accumulate": 1}, "batch 64"),
        (-1, {"batch": 96, "batch_per_rank": 48, "accumulate": 1}, "batch 96 (for -1), 48 per rank"),
        (64, {"batch": 64, "batch_per_rank": 32, "accumulate": 4}, "batch 64, 32 per rank, 4 batches per step"),
    ],
)
def test_a_batch_is_shown_as_it_is_trained_with(asked: int, progress: dict[str, int] | None, words: str) -> None:
    spec = {"device": "cuda:0,cuda:1", "train": {"batch": asked}}
    assert batch_of(job(spec=spec, progress=progress)) == words


def test_a_program_of_the_users_own_is_shown_as_it_is_run_and_by_the_steps_it_tells_of() -> None:
    options = {"script": "/home/me/my train.py", "module": None, "args": ["--epochs", "3"]}
    spec = {"device": "cpu", "train": {"recipe": "script", "options": options}}
    told = job(spec=spec, progress={"step": 7, "total_steps": None, "epoch": 1, "values": {"loss": 0.5}})
    assert training_of(told) == "python '/home/me/my train.py' --epochs 3"
    assert (progress_of(told), describe(told, None), metrics_of(told)) == ("step 7", "step 7", "loss 0.5000")
    assert progress_of(job(spec=spec, progress={"step": 0, "total_steps": None})) == "-"


@pytest.mark.parametrize(("state", "code"), [("succeeded", 0), ("failed", 1), ("cancelled", 3)])
def test_the_final_state_of_a_job_is_an_exit_code(state: str, code: int) -> None:
    assert exits.of_job(job(state)) == code


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("x"), 2),
        (RefusedError("x", status=422), 2),
        (UnreachableError("x"), 4),
        (EmbeddedError("x"), 1),
    ],
)
def test_an_error_is_an_exit_code(error: RankzeroError, code: int) -> None:
    assert exits.of_error(error) == code


def test_without_a_terminal_a_line_is_written_for_each_new_state_and_epoch() -> None:
    def at_step(step: int, epoch: int) -> Job:
        values = {"train/loss": 0.25, "val/accuracy": None}
        progress = {"step": step, "total_steps": 8, "epoch": epoch, "epochs": 2, "values": values}
        return job(progress=progress)

    updates = [
        job("queued", reason="waits for cuda:0 (job 3) on alpha"),
        at_step(1, 1),
        at_step(2, 1),
        at_step(5, 2),
        job("succeeded"),
    ]
    output = io.StringIO()
    last = follow(updates, Console(file=output, width=200))
    assert last.state == "succeeded"
    lines = output.getvalue().splitlines()
    assert lines[0] == "job 7 queued  waits for cuda:0 (job 3) on alpha"
    assert lines[1] == "job 7 running  epoch 1/2  step 1/8  loss 0.2500  val/accuracy not finite"
    assert re.fullmatch(r"job 7 running  epoch 2/2  step 5/8  ETA \S+  loss 0\.2500  val/accuracy not finite", lines[2])
    assert lines[3:] == ["job 7 succeeded"]


VALUES = {"train/loss": 0.5, "train/lr": 1e-5, "val/miou": 0.25, "val/pixel_accuracy": 0.75}


def training(**fields: Any) -> Job:
    progress = {"step": 3, "total_steps": 1000, "epoch": 1, "epochs": 10, "values": VALUES}
    train = {"recipe": "segmentation", "model": "fcn", "data": "d", "epochs": 10, "batch": 8}
    return job(spec={"device": "cpu", "train": train}, progress=progress, **fields)


def test_a_followed_job_shows_every_validation_metric_whatever_its_recipe() -> None:
    assert metrics_of(training()) == "loss 0.5000  val/miou 0.2500  val/pixel_accuracy 0.7500"


def test_a_followed_script_shows_all_that_it_reported() -> None:
    spec = {"device": "cpu", "train": {"recipe": "script"}}
    values = {"reward": 1234.5, "lr": 1e-5, "steps_seen": 12_345_678, "gap": None}
    told = job(spec=spec, progress={"step": 3, "values": values})
    assert metrics_of(told) == "reward 1234.5000  lr 1e-05  steps_seen 1.235e+07  gap not finite"


def test_a_narrow_terminal_cuts_the_metrics_and_neither_the_step_nor_the_time_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = iter(range(10))
    monkeypatch.setattr(following, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    first = training()
    moved = first.model_copy(update={"progress": Progress(step=5, total_steps=1000, epoch=1, epochs=10, values=VALUES)})
    output = io.StringIO()
    follow([first, moved], Console(file=output, width=80, force_terminal=True, color_system=None))
    assert re.search(r"epoch 1/10  step 5/1000  ETA 8m 18s loss 0\.5.*…", output.getvalue())


def shown(job: Job, **parts: Any) -> str:
    output = io.StringIO()
    print_job(Console(file=output, width=200), job, **parts)
    return output.getvalue()


def test_all_metrics_of_a_job_are_shown() -> None:
    assert "metrics   loss 0.5000  lr 1e-05  val/miou 0.2500  val/pixel_accuracy 0.7500\n" in shown(training())


def test_each_checkpoint_is_shown_by_its_id_and_step_and_where_its_copy_is() -> None:
    def checkpoint(number: int, step: int, *, best: bool) -> Checkpoint:
        known = {"host_name": "h", "epoch": 0, "sha256": "", "size_bytes": 1, "values": {}, "created_at": AT}
        copy = "s3://b/2.pt" if best else None
        made = {"id": number, "attempt": 1, "path": f"/{number}.pt", "step": step, "best": best, "copy_url": copy}
        return Checkpoint.model_validate(known | made)

    steps = ((1, 5, False), (2, 10, True), (3, 15, False), (4, 15, False))
    saved = [checkpoint(number, step, best=best) for number, step, best in steps]
    lines = [line.split("  ") for line in shown(training(), checkpoints=saved).splitlines() if "checkpoint" in line]
    assert [(line[0], line[-1].strip()) for line in lines] == [
        ("checkpoint 1 (step 5)", "/1.pt on h"),
        ("checkpoint 2 (best, step 10)", "/2.pt on h, copied to s3://b/2.pt"),
        ("checkpoint 3 (step 15)", "/3.pt on h"),
        ("checkpoint 4 (step 15)", "/4.pt on h"),
    ]


@pytest.mark.parametrize(
    ("cause", "rank", "message", "words"),
    [
        ("exception", 1, "KeyError: 'a'", "exception on rank 1: KeyError: 'a'"),
        ("killed_by_signal", 1, "rank 1 was ended by SIGKILL", "killed_by_signal: rank 1 was ended by SIGKILL"),
        ("data", 0, "data: no such folder", "data: no such folder"),
        ("host_lost", None, "host h is silent", "host_lost: host h is silent"),
    ],
)
def test_a_failure_names_the_rank_at_fault_once(cause: str, rank: int | None, message: str, words: str) -> None:
    failure = Failure(cause=cause, message=message, rank=rank)
    assert describe_failure(failure) == words
    assert f"failure   {words}\n" in shown(training(state="failed", failure=failure))


def test_a_waiting_job_is_shown_with_its_place_and_when_it_will_start() -> None:
    soon = datetime.now(UTC) + timedelta(minutes=90, seconds=30)
    waiting = training(state="queued", reason="waits for cuda:0 (job 3) on alpha", position=2, predicted_start=soon)
    assert "state     queued  (waits for cuda:0 (job 3) on alpha)\n" in shown(waiting)
    assert "line      2; starts in about 1h 30m\n" in shown(waiting)
    assert "line      2; its start cannot be foretold\n" in shown(waiting.model_copy(update={"predicted_start": None}))
    assert "line      2; starts soon\n" in shown(waiting.model_copy(update={"predicted_start": AT}))
    assert "priority  50\n" in shown(waiting)
    assert "line " not in shown(training())


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"nodes": 2}, "cuda:0,cuda:1 on each of 2 hosts  (2 ranks)"),
        ({"nodes": 1, "host": "alpha"}, "cuda:0,cuda:1 on alpha  (2 ranks)"),
        ({}, "cuda:0,cuda:1  (2 ranks)"),  # an older service
    ],
)
def test_devices_are_shown_with_the_hosts_that_were_asked_for(asked: dict[str, Any], words: str) -> None:
    asked_for = dict(training().spec) | {"device": "cuda:0,cuda:1"} | asked
    assert f"device    {words}\n" in shown(training().model_copy(update={"spec": asked_for}))


@pytest.mark.parametrize(
    ("start", "checkpoint", "words"),
    [
        (None, None, "cloned from job 7"),
        ({"job": 7, "checkpoint": 12, "mode": "resume"}, 12, "job 7; goes on from checkpoint 12 of job 7"),
        ({"job": 5, "mode": "weights"}, 12, "job 7; begins with the weights of checkpoint 12 of job 5"),
    ],
)
def test_a_job_is_shown_with_where_it_came_from(
    start: dict[str, Any] | None, checkpoint: int | None, words: str
) -> None:
    came = {"parent_id": 7, "parent_checkpoint_id": checkpoint, "spec": dict(training().spec) | {"start_from": start}}
    assert f"parent    {words}\n" in shown(training().model_copy(update=came))


def test_a_failed_job_shows_its_stack_and_its_last_lines_each_once() -> None:
    stack = "Traceback (most recent call last):\n  line\nValueError: no\n"
    failure = {"cause": "exception", "message": "ValueError: no", "rank": 1, "traceback": stack}
    alone = shown(training(state="failed", failure=failure | {"log_tail": f"epoch 3\n{stack}"}))
    assert alone.count("ValueError: no\n") == 2  # in the line that says why, and at the end of the stack
    both = shown(training(state="failed", failure=failure | {"log_tail": "epoch 3\n"}))
    assert both.endswith("ValueError: no\nthe last lines of rank 1's log:\nepoch 3\n")
    launcher = {"cause": "killed_by_signal", "message": "killed", "rank": None, "log_tail": "[red]Killed[/]"}
    assert shown(training(state="failed", failure=launcher)).endswith("of the launcher's log:\n[red]Killed[/]\n")
    assert "Killed[/]" not in shown(training(state="running", failure=launcher))


def test_a_plan_says_where_a_job_would_start_or_what_it_would_wait_for() -> None:
    free = {"host": "alpha", "closed": None, "devices": 4, "free": ["cuda:2", "cuda:3"]}
    shut = {"host": "beta", "closed": "drained", "devices": 2, "free": []}
    placed = [{"node_rank": 0, "host": "alpha", "devices": ["cuda:2", "cuda:3"]}]
    common = {"world_size": 2, "batch_per_rank": 32, "hosts": [free, shut], "waits_for": [], "position": 1}
    begins = {"starts_now": True, "placements": placed, "reason": None, "predicted_start": AT, "warnings": []}
    assert planned(common | begins) == [
        "starts now on alpha: cuda:2,cuda:3",
        "2 ranks, 32 samples of each batch on each",
        "could run on alpha: 2 of 4 devices free",
        "could run on beta: 0 of 2 devices free; it is drained",
    ]
    waits = {"starts_now": False, "placements": [], "reason": "waits for all", "predicted_start": None}
    assert planned(common | waits | {"hosts": [], "batch_per_rank": None, "warnings": ["no host has it"]}) == [
        "waits for all",
        "its place in the line: 1; its start cannot be foretold",
        "2 ranks",
        "warning: no host has it",
    ]


def attempt(number: int, **fields: Any) -> Attempt:
    absent = {"outcome": None, "failure": None, "resumed_step": None, "started_at": None, "ended_at": None}
    known = {"number": number, "world_size": 2, "created_at": AT, "placements": []}
    return Attempt.model_validate(absent | known | fields)


def test_a_failure_of_an_attempt_with_others_after_it_is_named_by_its_number() -> None:
    failure = {"cause": "hang", "message": "rank 1 made no progress"}
    attempts = [attempt(1, outcome="lost", failure=failure), attempt(2)]
    page = shown(training(state="running", failure=failure), attempts=attempts)
    assert "attempt 1 failed  hang: rank 1 made no progress\n" in page
    assert "failure " not in page


def test_an_attempt_that_was_told_to_stop_says_why() -> None:
    stopped = attempt(1, outcome="preempted", stop_message="preempted by job 18")
    assert "; preempted by job 18\n" in shown(training(), attempts=[stopped])


def test_a_job_is_shown_with_its_times_and_when_it_will_end() -> None:
    ago = datetime.now(UTC) - timedelta(minutes=10)
    waits = shown(training(state="queued", queued_at=ago))
    assert f"waits since  {ago.isoformat()}  (10m 0s ago)\n" in waits
    ended = shown(training(state="succeeded", started_at=ago, finished_at=ago + timedelta(minutes=5)))
    assert "(5m 0s ago), 5m 0s after its start\n" in ended
    progress = {"step": 300, "total_steps": 1000, "epoch": 1, "epochs": 10, "values": {}}
    begun = training(started_at=ago).model_copy(update={"progress": Progress.model_validate(progress)})
    # 200 steps of this attempt in 10 minutes, and 700 are left.
    page = shown(begun, attempts=[attempt(2, started_at=ago, resumed_step=100)])
    assert re.search(r"^ends +in about 35m [0-2]s, at its pace so far$", page, re.MULTILINE)
    assert "\nends " not in shown(begun, attempts=[attempt(2, started_at=ago, resumed_step=300)])


def event(kind: str, detail: dict[str, Any], **fields: Any) -> Event:
    known = {"id": 1, "attempt": 1, "at": AT, "kind": kind, "from_state": None, "to_state": None, "detail": detail}
    return Event.model_validate(known | fields)


def test_an_event_is_one_line() -> None:
    moved = event("state", {"outcome": "lost", "cause": "hang"}, from_state="running", to_state="queued")
    assert describe_event(moved) == f"{AT.isoformat()}  attempt 1  running -> queued outcome=lost cause=hang"
    said = event("log", {"level": "warning", "message": "two\nlines"})
    assert describe_event(said) == f"{AT.isoformat()}  attempt 1  log level=warning: two lines"
    asked = event("intent", {"intent": "pause"})
    assert describe_event(asked) == f"{AT.isoformat()}  attempt 1  intent=pause"


def test_the_event_of_a_change_says_what_it_was_and_is() -> None:
    labels = {"from": {}, "to": {"team": "vision", "night": "1"}}
    change = event("change", {"priority": {"from": 50, "to": 90}, "labels": labels, "by_class": {"a": 0.5}})
    told = "change priority: 50 -> 90 labels: none -> team=vision,night=1"
    assert describe_event(change) == f"{AT.isoformat()}  attempt 1  {told}"


def test_the_last_warnings_are_shown_with_a_job() -> None:
    events = [event("log", {"level": "warning", "message": f"warning {number}"}) for number in range(7)]
    page = shown(training(), events=[*events, event("log", {"level": "info", "message": "epoch 3"})])
    assert [line.split()[-1] for line in page.splitlines() if line.startswith("warning")] == ["2", "3", "4", "5", "6"]
    assert "epoch 3" not in page


def test_a_list_of_jobs_has_the_place_of_those_that_wait() -> None:
    output = io.StringIO()
    print_jobs(Console(file=output, width=200), [training(state="queued", position=3, reason="waits"), training()])
    headings, waiting, running = (line.split() for line in output.getvalue().splitlines())
    assert (headings[4], waiting[4], running[4]) == ("LINE", "3", "0%")


def planned(plan: dict[str, Any]) -> list[str]:
    output = io.StringIO()
    print_plan(Console(file=output, width=200), Plan.model_validate(plan))
    return output.getvalue().splitlines()


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_table_that_changes_has_a_line_for_each_job_and_no_more_than_the_terminal_has() -> None:
    long = "a name that is far longer than there is room for in a table"
    jobs = [job("queued", id=number, name=long, reason=f"waits for {long}") for number in range(100, 140)]
    console = Console(file=Screen(), width=80, height=24, color_system=None)

    with console.capture() as capture:
        console.print(table_of(jobs, console, silent_s=9))
    heading, *rows, below = capture.get().splitlines()

    assert heading.split() == ["ID", "STATE", "NAME", "DEVICE", "LINE", "PROGRESS", "AGE", "NOTE"]
    assert [row.split()[:2] for row in rows] == [[str(number), "queued"] for number in range(100, 120)]
    assert max(map(len, (heading, *rows, below))) <= 80
    assert re.fullmatch(r"..:..:..; 40 jobs; 20 more than there are rows for; the service has not .*", below)


def test_a_table_that_changes_outlasts_a_service_that_is_away_until_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    at_s = 0.0

    def sleep(seconds: float) -> None:
        nonlocal at_s
        at_s += seconds

    def read() -> list[Job]:
        found = looks.pop(0)
        if isinstance(found, BaseException):
            raise found
        return [found]

    monkeypatch.setattr(watching, "time", SimpleNamespace(sleep=sleep, monotonic=lambda: at_s))
    away = [UnreachableError("away")] * 3
    looks: list[Job | BaseException] = [job("queued"), *away, job("succeeded"), KeyboardInterrupt()]
    screen = Screen()
    watching.watch(read, Console(file=screen, width=80, height=24))

    shown = screen.getvalue()
    assert looks == []
    assert shown.count("has not answered for 6 s") == 1
    assert shown.count("queued") == 4
    assert shown.index("has not answered") < shown.index("succeeded")


@pytest.mark.parametrize(
    ("values", "course"),
    [
        ([0.0, 1.0], "▁█"),
        ([5.0, 5.0, 5.0], "▁▁▁"),
        ([0.0, None, 7.0, 3.6], "▁x█▅"),
        ([None, None], "xx"),
        ([-1.7e308, 1.7e308], "▁█"),
        (list(map(float, range(40))), "▁▁▂▂▂▃▃▄▄▄▅▅▆▆▆▇▇███"),
    ],
)
def test_the_course_of_a_metric_is_drawn_between_its_lowest_and_highest_value(
    values: list[float | None], course: str
) -> None:
    assert course_of(values) == course
