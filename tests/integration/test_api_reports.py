"""What runs report, read back over HTTP: metrics, checkpoints, attempts, logs; and the hosts they run on."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from jobs.states import Outcome, StopOrder
from jobs.store import attempts
from jobs.store.reports import CheckpointFile, LogPiece, MetricPoint
from tests.api_server import ApiServer
from tests.integration.running_job import RunningJob, start_job
from trainer.journal import JournalWriter, Metrics
from trainer.reporting import metric_fields
from trainer.run_dir import RunDir
from worker.shipping import Shipper

AT = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)


@pytest.fixture
def run(api: ApiServer) -> Iterator[RunningJob]:
    """A job that runs on both devices of its host, until the test is over."""
    job_id = api.submit(device="0,1")
    run = start_job(api.database, job_id)
    yield run
    if api.http.get(f"/jobs/{job_id}").json()["state"] == "running":
        run.end(Outcome.SUCCEEDED)


def get(api: ApiServer, path: str, **params: Any) -> Any:
    answer = api.http.get(path, params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_values_that_are_not_finite_are_null_with_their_kind_in_strict_json(api: ApiServer, run: RunningJob) -> None:
    values = [(1, 0.5, None), (2, None, "nan"), (3, None, "inf"), (4, None, "-inf")]
    run.add(metrics=[MetricPoint("train/loss", step, 1, AT, value, kind) for step, value, kind in values])

    answer = api.http.get(f"/jobs/{run.job_id}/metrics")

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    items = json.loads(answer.text, parse_constant=refuse)["items"]
    assert [(item["step"], item["value"], item["kind"]) for item in items] == values
    assert items[0]["at"] == "2026-03-01T12:30:00Z"


def test_what_a_run_measures_goes_from_its_journal_to_the_answer_with_every_gap(
    api: ApiServer, run: RunningJob, tmp_path: Path
) -> None:
    measured = [0.25, float("nan"), float("inf"), float("-inf"), 1 / 3]
    journal = JournalWriter(RunDir(tmp_path).journal)
    for step, value in enumerate(measured, start=1):
        journal.append(Metrics, step=step, epoch=1, **metric_fields({"точность": value, "val/🎯": -value}))
    journal.close()
    run.placement.run_dir = str(tmp_path)
    Shipper(api.database, run.placement).ship(final=True)

    with api.client() as client:
        by_client = list(client.metrics(run.job_id, names=["точность"], from_step=2))
    gaps = [(None, "nan"), (None, "inf"), (None, "-inf")]
    assert [(metric.value, metric.kind) for metric in by_client] == [*gaps, (1 / 3, None)]
    found = get(api, f"/jobs/{run.job_id}/metrics", name="val/🎯")["items"]
    assert [(item["value"], item["kind"]) for item in found] == [
        (-0.25, None),
        *[(None, kind) for kind in ("nan", "-inf", "inf")],
        (-1 / 3, None),
    ]


def test_metrics_are_found_by_name_and_from_a_step_on(api: ApiServer, run: RunningJob) -> None:
    run.add(
        metrics=[
            MetricPoint(name, step, 1, AT, float(step))
            for name in ("точность", "train/loss", "val/loss")
            for step in range(1, 4)
        ]
    )
    items = get(api, f"/jobs/{run.job_id}/metrics", name=["точность", "val/loss"], from_step=2)["items"]
    assert {(item["name"], item["step"]) for item in items} == {
        (name, step) for name in ("точность", "val/loss") for step in (2, 3)
    }


def test_pages_of_metrics_hold_each_value_once(api: ApiServer, run: RunningJob) -> None:
    run.add(metrics=[MetricPoint(name, step, 1, AT, 0.0) for name in ("a", "b") for step in range(50)])
    seen, cursor = [], None
    while True:
        page = get(api, f"/jobs/{run.job_id}/metrics", size=30, **({"cursor": cursor} if cursor else {}))
        seen += [(item["name"], item["step"]) for item in page["items"]]
        cursor = page["next_page"]
        if cursor is None:
            break
    assert seen == [(name, step) for name in ("a", "b") for step in range(50)]


def test_a_checkpoint_that_was_replaced_is_shown_only_on_request(api: ApiServer, run: RunningJob) -> None:
    for step, removed in ((10, ()), (20, ("/runs/10.pt",))):
        run.add(
            checkpoint=CheckpointFile(
                path=f"/runs/{step}.pt",
                step=step,
                epoch=step // 10,
                sha256="0" * 64,
                size_bytes=5_000_000_000,
                best=True,
                values={"val/accuracy": 0.9},
                at=AT,
                removed=removed,
            )
        )
    path = f"/jobs/{run.job_id}/checkpoints"
    assert [(item["path"], item["best"]) for item in get(api, path)["items"]] == [("/runs/20.pt", True)]
    assert [item["step"] for item in get(api, path, removed=True)["items"]] == [10, 20]


def test_attempts_show_the_hosts_and_devices_they_were_given(api: ApiServer, run: RunningJob) -> None:
    (attempt,) = get(api, f"/jobs/{run.job_id}/attempts")["items"]
    assert (attempt["number"], attempt["outcome"], attempt["world_size"]) == (1, None, 2)
    (placement,) = attempt["placements"]
    assert placement["host"] == run.placement.host_name
    assert [(device["name"], device["simulated"]) for device in placement["devices"]] == [
        ("cuda:0", True),
        ("cuda:1", True),
    ]


def test_an_attempt_shows_why_it_was_told_to_stop(api: ApiServer, run: RunningJob) -> None:
    path = f"/jobs/{run.job_id}/attempts"
    assert get(api, path)["items"][0]["stop_message"] is None
    with api.database.session_scope() as session:
        attempts.order_stop(session, StopOrder.PREEMPTED, "preempted by job 18", job_id=run.job_id, attempt=1)
    assert get(api, path)["items"][0]["stop_message"] == "preempted by job 18"


def test_a_failure_shows_its_cause_rank_traceback_and_last_lines(api: ApiServer, run: RunningJob) -> None:
    told = {"cause": "exception", "message": "ValueError: no", "rank": 1, "signal": None}
    failure = told | {"traceback": "Traceback …", "log_tail": "epoch 3\n"}
    run.end(Outcome.FAILED, failure=failure)
    job = get(api, f"/jobs/{run.job_id}")
    assert (job["state"], job["failure"]) == ("failed", failure)
    assert get(api, f"/jobs/{run.job_id}/attempts")["items"][0]["failure"] == failure


def test_progress_is_shown_as_it_was_reported(api: ApiServer, run: RunningJob) -> None:
    progress = {"step": 5, "total_steps": 50, "epoch": 1, "epochs": 5, "values": {"train/loss": 0.5, "bad": None}}
    progress |= {"batch": 96, "batch_per_rank": 48, "accumulate": 2}
    run.add(progress=progress)
    shown = get(api, f"/jobs/{run.job_id}")["progress"]
    assert progress.items() <= shown.items()


def test_logs_are_followed_and_narrowed_to_a_rank(api: ApiServer, run: RunningJob) -> None:
    path = f"/jobs/{run.job_id}/logs"
    run.add(logs=[LogPiece(0, 0, "привет\n"), LogPiece(1, 0, "\x1b[31mred\x1b[0m\n")])
    first = get(api, path)
    assert [(item["rank"], item["text"]) for item in first["items"]] == [(0, "привет\n"), (1, "\x1b[31mred\x1b[0m\n")]
    run.add(logs=[LogPiece(0, 13, "more\n")])
    assert [item["text"] for item in get(api, path, after=first["after"])["items"]] == ["more\n"]
    assert [item["rank"] for item in get(api, path, rank=1)["items"]] == [1]
    assert get(api, path, attempt=2)["items"] == []


def test_hosts_show_who_holds_each_device(api: ApiServer, run: RunningJob) -> None:
    hosts = {host["name"]: host for host in get(api, "/hosts")["items"]}
    assert hosts[run.placement.host_name]["alive"]
    held = {device["name"]: device["held_by"] for device in hosts[run.placement.host_name]["devices"]}
    assert held == {name: {"job_id": run.job_id, "attempt": 1} for name in ("cuda:0", "cuda:1")}


def test_a_running_job_that_is_cancelled_keeps_running_until_its_supervisor_ends_it(
    api: ApiServer, run: RunningJob
) -> None:
    job = api.http.post(f"/jobs/{run.job_id}/cancel").json()
    assert (job["state"], job["intent"]) == ("running", "cancel")
    run.end(Outcome.CANCELLED)
    assert get(api, f"/jobs/{run.job_id}")["state"] == "cancelled"
