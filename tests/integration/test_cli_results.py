"""What the command shows of a job's course: why it is where it is, its output, its metrics, its checkpoints."""

import csv
import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from jobs.states import Outcome
from jobs.store.reports import LogPiece, MetricPoint
from tests.api_server import ApiServer
from tests.integration.checkpoint_files import SavingRun, saving
from tests.integration.command import document, on_a_terminal, rankzero
from tests.integration.conftest import api_on_sqlite
from tests.integration.running_job import start_job
from tests.integration.store.conftest import Service

AT = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory, migrated_sqlite_template: Path) -> Iterator[ApiServer]:
    with api_on_sqlite(migrated_sqlite_template, tmp_path_factory.mktemp("api")) as server:
        yield server


@pytest.fixture
def run(api: ApiServer, tmp_path: Path) -> SavingRun:
    """A job that has three checkpoints, the second the best."""
    job = start_job(api.database, api.submit(device="0,1"))
    run = saving(Service(api.database), job.placement, tmp_path / "runs")
    for step in (1, 2, 3):
        run.save(step, best=step == 2)
    run.service.end(run.placement, Outcome.SUCCEEDED)
    return run


def test_of_a_failed_job_the_rank_its_traceback_and_what_to_do_are_told(api: ApiServer) -> None:
    run = start_job(api.database, api.submit(device="0,1", max_retries=0))
    failure = {"cause": "out_of_memory", "message": "rank 1 ran out of memory", "rank": 1}
    run.end(Outcome.FAILED, failure=failure | {"traceback": None, "log_tail": "loading\nallocating\n"})
    job_id = str(run.job_id)

    shown = rankzero(api.url, "why", job_id).stdout
    told = document(rankzero(api.url, "why", job_id, "--json"))

    assert shown.startswith(f"job {job_id} is failed\n  out_of_memory: rank 1 ran out of memory\n")
    assert "the last lines of rank 1's log:\nloading\nallocating\n" in shown
    assert shown.splitlines()[-1].startswith("what to do: a smaller batch")
    assert f"rankzero clone {job_id} --set batch=-1" in shown
    assert (told["state"], told["failure"]["rank"]) == ("failed", 1)
    assert told["to_do"] == [shown.splitlines()[-1].removeprefix("what to do: ")]


def test_of_a_waiting_and_of_a_running_job_it_is_told_what_it_does(api: ApiServer) -> None:
    run = start_job(api.database, api.submit(device="0,1"))
    waiting = str(api.submit(device="cuda:9"))
    run.add(progress={"step": 5, "total_steps": 50})

    shown = rankzero(api.url, "why", waiting).stdout
    assert shown.startswith(f"job {waiting} is queued\n  waits: no registered host has cuda:9\n  in the line since ")
    assert f"rankzero clone {waiting} --device … asks for other devices" in shown
    running = rankzero(api.url, "why", str(run.job_id)).stdout
    assert "it is at 10% of 50 steps" in running
    assert run.placement.host_name in running
    rankzero(api.url, "pause", str(run.job_id))
    assert "it was asked to pause" in rankzero(api.url, "why", str(run.job_id)).stdout
    rankzero(api.url, "pause", waiting)
    assert f"rankzero resume {waiting}" in rankzero(api.url, "why", waiting).stdout


def test_the_last_lines_of_each_rank_are_shown_and_what_follows_them(api: ApiServer) -> None:
    run = start_job(api.database, api.submit(device="0,1"))
    run.add(logs=[LogPiece(0, 0, "one\ntwo\nthree\n"), LogPiece(1, 0, "eins\nzwei\n")])
    run.end(Outcome.SUCCEEDED)
    job_id = str(run.job_id)

    assert rankzero(api.url, "logs", job_id, "--tail", "1").stdout.splitlines() == ["[rank 0] three", "[rank 1] zwei"]
    assert rankzero(api.url, "logs", job_id, "-n", "2", "-f", "--rank", "0").stdout == "two\nthree\n"


def test_output_is_followed_from_its_last_lines_to_the_end_of_the_job(api: ApiServer) -> None:
    run = start_job(api.database, api.submit(device="0,1"))
    run.add(logs=[LogPiece(0, 0, "one\ntwo\n"), LogPiece(1, 0, "eins\n")])

    with on_a_terminal(api.url, "logs", str(run.job_id), "-f", "--tail", "1") as terminal:
        terminal.wait_for(r"\[rank 0\] two\r?\n\[rank 1\] eins")
        run.add(logs=[LogPiece(1, 5, "zwei\ndr"), LogPiece(0, 8, "three\n")])
        terminal.wait_for(r"\[rank 0\] three")
        run.add(logs=[LogPiece(1, 12, "ei\n")])
        run.end(Outcome.SUCCEEDED)
        code = terminal.exit_code()

    assert code == 0
    lines = ["[rank 0] two", "[rank 1] eins", "[rank 1] zwei", "[rank 0] three", "[rank 1] drei"]
    assert terminal.text.splitlines() == lines


def test_output_is_searched(api: ApiServer) -> None:
    run = start_job(api.database, api.submit(device="0,1"))
    run.add(logs=[LogPiece(0, 0, "one\nNaN here\nthree\n"), LogPiece(1, 0, "a nan\n")])
    run.end(Outcome.SUCCEEDED)
    job_id = str(run.job_id)

    assert rankzero(api.url, "logs", job_id, "--search", "NaN").stdout == "[rank 0] NaN here\n"
    both = rankzero(api.url, "logs", job_id, "--search", "NaN", "-i").stdout.splitlines()
    assert both == ["[rank 0] NaN here", "[rank 1] a nan"]
    (found,) = document(rankzero(api.url, "logs", job_id, "--search", "three", "--json"))
    assert (found["rank"], found["offset"]) == (0, 13)
    assert "no line with 'ten' in it" in rankzero(api.url, "logs", job_id, "--search", "ten").stderr


def test_metrics_are_shown_by_their_last_lowest_and_highest_value(api: ApiServer) -> None:
    run = start_job(api.database, api.submit(device="0,1"))
    losses = [MetricPoint("train/loss", step, 1, AT, abs(step - 60) / 10) for step in range(1, 101)]
    run.add(metrics=[*losses, MetricPoint("val/[x]", 100, 1, AT, None, "nan")])
    run.end(Outcome.SUCCEEDED)
    job_id = str(run.job_id)

    heading, loss, odd = rankzero(api.url, "metrics", job_id).stdout.splitlines()
    assert heading.split() == ["METRIC", "STEP", "LAST", "LOWEST", "HIGHEST", "COURSE"]
    assert loss.split() == ["train/loss", "100", "4.0000", "0.0000", "5.9000"]
    assert odd.split() == ["val/[x]", "100", "nan"]
    assert len(document(rankzero(api.url, "metrics", job_id, "--json", "--name", "train/loss"))) == 100
    thinned = document(rankzero(api.url, "metrics", job_id, "--json", "--points", "9", "--name", "train/loss"))
    assert len(thinned) <= 9
    none = rankzero(api.url, "metrics", job_id, "--name", "loss").stdout
    assert none == f"job {job_id} has no value of loss; it has told of train/loss, val/[x]\n"
    assert {0.0, 4.0, 5.9} <= {each["value"] for each in thinned}


def test_metrics_as_csv_are_those_that_the_service_writes(api: ApiServer) -> None:
    run = start_job(api.database, api.submit(device="0,1"))
    run.add(metrics=[MetricPoint("a", 1, 1, AT, 0.1), MetricPoint("a", 2, 1, AT, None, "inf")])
    written = api.http.get(f"/jobs/{run.job_id}/metrics", params={"format": "csv"}).text
    run.end(Outcome.SUCCEEDED)

    printed = rankzero(api.url, "metrics", str(run.job_id), "--csv").stdout

    assert list(csv.reader(io.StringIO(printed))) == list(csv.reader(io.StringIO(written)))
    assert len(printed.splitlines()) == 3


def test_checkpoints_are_listed_and_the_best_is_downloaded(api: ApiServer, run: SavingRun, tmp_path: Path) -> None:
    job_id = str(run.placement.job_id)
    ids = {step: each.id for step, each in run.checkpoints().items()}

    listed = rankzero(api.url, "checkpoints", job_id).stdout.splitlines()
    assert [line.split()[0] for line in listed[1:]] == [str(each) for each in ids.values()]
    assert [line.split()[1] for line in listed[1:]] == ["1", "best", "3"]
    file = tmp_path / "best.pt"
    assert rankzero(api.url, "checkpoints", job_id, "--download", "best", "-o", str(file)).stdout == f"{file}\n"
    assert file.read_bytes() == run.contents[2]
    by_id = document(rankzero(api.url, "checkpoints", job_id, "--download", str(ids[3]), "-o", str(tmp_path), "--json"))
    assert Path(by_id["file"]).read_bytes() == run.contents[3]
    wrong = rankzero(api.url, "checkpoints", job_id, "--download", "worst")
    assert (wrong.returncode, wrong.stderr.count("\n"), "'best' or 'last'" in wrong.stderr) == (2, 1, True)


def test_checkpoints_are_removed_one_by_one_and_all_but_some(api: ApiServer, run: SavingRun) -> None:
    job_id = str(run.placement.job_id)
    ids = {step: each.id for step, each in run.checkpoints().items()}

    removed = rankzero(api.url, "checkpoints", job_id, "--delete", str(ids[1])).stdout
    assert removed == f"checkpoint {ids[1]} is removed\n"
    pruned = rankzero(api.url, "checkpoints", job_id, "--keep", "best").stdout
    assert pruned == f"removed: {ids[3]}; kept: {ids[2]}\n"
    unknown = rankzero(api.url, "checkpoints", job_id, "--keep", "worst")
    assert (unknown.returncode, "keep" in unknown.stderr) == (2, True)
    assert json.loads(rankzero(api.url, "checkpoints", job_id, "--json").stdout)[-1]["id"] == ids[2]
