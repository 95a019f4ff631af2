"""The command against a real API, on one engine since it talks HTTP alone: what it prints, and its exit codes."""

import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.states import Outcome
from jobs.store.reports import LogPiece
from tests.api_server import ApiServer
from tests.integration.command import DETACHED, document, rankzero, rankzero_process
from tests.integration.conftest import api_on_sqlite
from tests.integration.running_job import saved, start_job
from tests.ports import PortClaim
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory, migrated_sqlite_template: Path) -> Iterator[ApiServer]:
    with api_on_sqlite(migrated_sqlite_template, tmp_path_factory.mktemp("api")) as server:
        yield server


def test_a_job_is_submitted_by_flags_on_top_of_a_file(api: ApiServer, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("device: [0, 1]\nlabels: {team: vision}\ntrain: {model: resnet50, data: digits, batch: 64}\n")
    flags = ("--name", "точность", "--epochs", "3", "--set", "amp=bf16", "--label", "a=🚀")
    job = document(rankzero(api.url, "submit", str(file), *flags, "-d", "--json"))
    assert (job["name"], job["spec"]["device"], job["labels"]) == ("точность", "cuda:0,cuda:1", {"a": "🚀"})
    train = job["spec"]["train"]
    assert [train[key] for key in ("model", "batch", "epochs", "amp")] == ["resnet50", 64, 3, "bf16"]


def test_letters_that_a_terminal_lacks_end_no_command(api: ApiServer) -> None:
    api.submit(name="точность", labels={"of": "letters"})
    done = rankzero_process(api.url, "ls", "--label", "of=letters", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert "\\u0442\\u043e" in done.stdout


def test_a_job_is_submitted_from_standard_input(api: ApiServer) -> None:
    spec = json.dumps({"device": "cpu", "train": {"model": "resnet18", "data": "digits"}})
    job = document(rankzero(api.url, "submit", "-", "--batch", "-1", "-d", "--json", stdin=spec))
    assert (job["spec"]["device"], job["spec"]["train"]["batch"]) == ("cpu", -1)


def test_jobs_are_listed_shown_and_cancelled(api: ApiServer) -> None:
    job = document(rankzero(api.url, *DETACHED, "--name", "by hand", "--label", "of=cli"))
    job_id = str(job["id"])

    assert [each["id"] for each in document(rankzero(api.url, "ls", "--label", "of=cli", "--json"))] == [job["id"]]
    assert "by hand" in rankzero(api.url, "ls", "--label", "of=cli").stdout
    shown = document(rankzero(api.url, "show", job_id, "--json"))
    assert (shown["state"], shown["attempts"], shown["checkpoints"]) == ("queued", [], [])
    assert "resnet18 on digits" in rankzero(api.url, "show", job_id).stdout
    assert rankzero(api.url, "ls", "--label", "of=nobody").stdout == "no job matches these filters\n"
    assert document(rankzero(api.url, "cancel", job_id, "--json"))["state"] == "cancelled"
    assert rankzero(api.url, "cancel", job_id).stdout == f"job {job_id} is cancelled\n"


def test_jobs_are_listed_by_every_filter_of_the_api(api: ApiServer) -> None:
    run = start_job(api.database, api.submit(device="0,1", priority=77, labels={"of": "filters"}))
    api.submit(device="cpu", priority=76, labels={"of": "filters"})

    for filters in (
        ("--priority", "77"),
        ("--host", f"host-of-{run.job_id}"),
        ("--recipe", "classification", "--model", "resnet18", "--priority", "77"),
        ("--created-after", "1h", "--created-before", "2100-01-01T00:00+01:00", "--state", "running"),
    ):
        found = document(rankzero(api.url, "ls", "--label", "of=filters", *filters, "--json"))
        assert [each["id"] for each in found] == [run.job_id], filters
    for filters in (("--finished-after", "2026-01-01"), ("--created-before", "1h"), ("--recipe", "script")):
        listed = rankzero(api.url, "ls", "--label", "of=filters", *filters)
        assert listed.stdout == "no job matches these filters\n", filters


@pytest.mark.parametrize(
    ("outcome", "state", "code"),
    [(Outcome.SUCCEEDED, "succeeded", 0), (Outcome.FAILED, "failed", 1), (Outcome.CANCELLED, "cancelled", 3)],
)
def test_the_exit_code_of_a_followed_job_is_its_result(api: ApiServer, outcome: Outcome, state: str, code: int) -> None:
    label = f"of=exit-{state}"

    def run_it() -> None:
        wait_until(found, timeout_s=30, what="the job to be submitted")
        run = start_job(api.database, found()[0])
        failure = {"cause": "exception", "message": "ValueError: no", "traceback": "the traceback", "rank": 1}
        run.end(outcome, failure=failure if outcome is Outcome.FAILED else None)

    def found() -> list[int]:
        with api.client() as client:
            key, _, value = label.partition("=")
            return [job.id for job in client.list(labels={key: value})]

    runner = threading.Thread(target=run_it)
    runner.start()
    done = rankzero(api.url, "submit", "--model", "resnet18", "--data", "digits", "--device", "0,1", "--label", label)
    runner.join()

    assert done.returncode == code, done.stderr
    assert re.search(rf"^state +{state}$", done.stdout, re.MULTILINE)
    assert ("the traceback" in done.stdout) == (outcome is Outcome.FAILED)


def test_logs_of_several_ranks_come_in_whole_lines_with_the_rank(api: ApiServer) -> None:
    run = start_job(api.database, api.submit(device="0,1"))
    run.add(logs=[LogPiece(0, 0, "one\ntw"), LogPiece(1, 0, "eins\n"), LogPiece(0, 6, "o\nthree")])
    run.end(Outcome.SUCCEEDED)
    job_id = str(run.job_id)
    assert rankzero(api.url, "logs", job_id, "-f").stdout.splitlines() == [
        "[rank 0] one",
        "[rank 1] eins",
        "[rank 0] two",
        "[rank 0] three",
    ]
    assert rankzero(api.url, "logs", job_id, "--rank", "0").stdout == "one\ntwo\nthree"
    assert [piece["rank"] for piece in document(rankzero(api.url, "logs", job_id, "--json"))] == [0, 1, 0]


def test_show_names_devices_as_simulated_and_the_best_checkpoint(api: ApiServer) -> None:
    run = start_job(api.database, api.submit(device="0,1", name="[red]not markup[/]"))
    run.add(checkpoint=saved("/runs/[1].pt"))
    run.end(Outcome.SUCCEEDED)
    shown = rankzero(api.url, "show", str(run.job_id)).stdout
    assert f"cuda:0,cuda:1 (simulated) on {run.placement.host_name}" in shown
    assert f"/runs/[1].pt on {run.placement.host_name}" in shown
    assert "[red]not markup[/]" in shown


@pytest.mark.parametrize(
    ("arguments", "stdin", "complaint"),
    [
        (("submit", "--model", "resnet18"), None, "train.data"),
        (("submit", "--model", "resnet18", "--data", "digits", "--device", "0,0"), None, "'0' is listed twice"),
        (("submit", "--model", "resnet18", "--data", "digits", "--device", "gpu"), None, 'devices: {"count": 2}'),
        (("events", "999999"), None, "no job 999999"),
        (("submit", "/nonexistent/job.yaml"), None, "No such file"),
        (("submit", "-"), "a: [", "neither YAML nor JSON"),
        (("submit", "-"), "- 1", "a job spec is a mapping"),
        (("submit", "-"), "train: 3", "train: a mapping is wanted"),
        (("submit", "-"), "train: {model: m, data: d, lr: .nan}", "no JSON"),
        (("submit", "-"), "train: {model: m, data: d, when: 2026-01-01}", "no JSON"),
        (("submit", "--label", "x", "--model", "m", "--data", "d"), None, "key=value"),
        (("submit", "--set", "x", "--model", "m", "--data", "d"), None, "key=value"),
        (("show", "999999"), None, "no job 999999"),
        (("logs", "999999"), None, "no job 999999"),
        (("cancel", "999999"), None, "no job 999999"),
        (("pause", "999999"), None, "no job 999999"),
        (("ls", "--state", "done"), None, "state"),
        (("ls", "--sort", "colour"), None, "sort"),
        (("ls", "--watch"), None, "on a terminal"),
        (("ls", "--watch", "--json"), None, "GET /events"),
        (("why", "999999"), None, "no job 999999"),
        (("logs", "7", "--search", "a", "-f"), None, "does not go with -f"),
        (("logs", "7", "-i"), None, "goes with --search"),
        (("metrics", "7", "--points", "9"), None, "--csv or --json"),
        (("metrics", "7", "--csv", "--json"), None, "take one"),
        (("checkpoints", "7", "--delete", "1", "--keep", "best"), None, "one at a time"),
        (("checkpoints", "7", "-o", "a.pt"), None, "--download"),
        (("checkpoints", "7", "--download", "9" * 5000), None, "is no checkpoint"),
        (("set", "7", "colour=3"), None, "write priority=50"),
        (("set", "7", f"priority={'9' * 5000}"), None, "write priority=50"),
        (("submit", "--model", "m", "--data", "d", "--set", f"batch={'9' * 5000}"), None, "cannot be read"),
        (("ls", "--created-after", "soon"), None, "no time"),
        (("ls", "--finished-after", "99999999d"), None, "no calendar goes so far"),
        (("recipes", "alchemy"), None, "alchemy"),
        (("data-sets", "atlantis"), None, "atlantis"),
        (("webhooks", "change", "7", "--no-labels", "--label", "a=b"), None, "take one"),
        (("hosts", "--json", "remove", "alpha"), None, "rankzero hosts remove --json"),
        (("token", "--user", "bob", "create", "ci"), None, "rankzero token create --user"),
        (("secrets", "set", "wandb"), "", "nothing was given"),
        (("token", "create", "ci", "--expires-in", "soon"), None, "no duration"),
        (("token", "create", "ci", "--expires-in", "99999999d"), None, "no calendar goes so far"),
        (("ls", "--name", "\udcff"), None, "cannot be asked for"),
        (("users", "set", "\udcff", "--disable"), None, "no text"),
    ],
)
def test_what_is_wrong_is_said_in_one_line_with_exit_code_2(
    api: ApiServer, arguments: tuple[str, ...], stdin: str | None, complaint: str
) -> None:
    done = rankzero(api.url, *arguments, stdin=stdin)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("rankzero: ")
    assert complaint in done.stderr


def test_where_no_service_answers_the_exit_code_is_4() -> None:
    claim = PortClaim()
    done = rankzero_process(f"http://127.0.0.1:{claim.port}", "ls")
    claim.release()
    assert done.returncode == 4
    assert done.stderr.count("\n") == 1
    assert "rankzero up" in done.stderr


def test_a_command_that_is_none_ends_with_exit_code_2() -> None:
    assert rankzero("http://127.0.0.1:1", "colour").returncode == 2
