"""The Python client against a real API."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from jobs.states import Outcome
from jobs.store.reports import CheckpointFile, LogPiece, MetricPoint
from rankzero import Client
from rankzero.errors import RefusedError, UnreachableError, UsageError, WaitTimeoutError
from tests.api_server import TRAIN, ApiServer
from tests.integration.running_job import start_job
from tests.ports import PortClaim

AT = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def client(api: ApiServer) -> Iterator[Client]:
    with api.client() as client:
        yield client


def test_a_submitted_job_is_found_again_and_cancelled(client: Client) -> None:
    job = client.submit({"device": "cpu", "train": TRAIN}, name="mine", labels={"of": "client"})
    assert (job.name, job.state, job.device, job.world_size) == ("mine", "queued", "cpu", 1)
    assert client.get(job.id).id == job.id
    assert [each.id for each in client.list(labels={"of": "client"}, state=["queued"])] == [job.id]
    assert client.cancel(job.id).state == "cancelled"


def test_listing_goes_through_every_page(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rankzero.connection.PAGE", 2)
    mine = [client.submit(device="cpu", train=TRAIN, labels={"of": "list"}).id for _ in range(5)]
    assert [job.id for job in client.list(labels={"of": "list"}, sort="id")] == mine


def test_a_refused_spec_is_one_line_that_names_each_field(client: Client) -> None:
    with pytest.raises(RefusedError) as refused:
        client.submit(device="0,0", train=TRAIN | {"batch": 0})
    assert set(refused.value.fields) == {"device", "train.batch"}
    assert refused.value.status == 422
    assert "\n" not in str(refused.value)


def test_a_missing_job_is_named(client: Client) -> None:
    with pytest.raises(RefusedError, match="no job 999999"):
        client.get(999_999)


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, AT])
def test_a_spec_that_is_no_json_is_refused_before_it_is_sent(client: Client, value: object) -> None:
    with pytest.raises(UsageError, match="no JSON"):
        client.submit(device="cpu", train=TRAIN | {"lr": value})


def test_everything_a_run_reports_comes_back(api: ApiServer, client: Client) -> None:
    run = start_job(api.database, api.submit(device="0,1"))
    run.add(
        metrics=[MetricPoint("val/accuracy", step, step, AT, step / 10) for step in range(1, 4)],
        logs=[LogPiece(0, 0, "hello\n"), LogPiece(1, 0, "world\n")],
        checkpoint=CheckpointFile(
            path="/runs/3.pt", step=3, epoch=3, sha256="0" * 64, size_bytes=1, best=True, values={}, at=AT
        ),
    )
    run.end(Outcome.SUCCEEDED)

    assert client.wait(run.job_id).state == "succeeded"
    assert [metric.value for metric in client.metrics(run.job_id, names=["val/accuracy"], from_step=2)] == [0.2, 0.3]
    assert [checkpoint.path for checkpoint in client.checkpoints(run.job_id)] == ["/runs/3.pt"]
    assert [chunk.text for chunk in client.logs(run.job_id)] == ["hello\n", "world\n"]
    assert [chunk.text for chunk in client.logs(run.job_id, rank=1)] == ["world\n"]
    (attempt,) = client.attempts(run.job_id)
    assert [device.name for device in attempt.placements[0].devices] == ["cuda:0", "cuda:1"]
    assert [event.to_state for event in client.events(run.job_id) if event.kind == "state"] == [
        "starting",
        "running",
        "succeeded",
    ]


def test_following_yields_each_change_and_ends_with_the_job(api: ApiServer, client: Client) -> None:
    run = start_job(api.database, api.submit(device="0,1"))
    seen = []
    for job in client.follow(run.job_id, poll_s=0.01):
        seen.append((job.state, job.progress.step if job.progress else None))
        if len(seen) == 1:
            run.add(progress={"step": 1, "total_steps": 2})
        elif len(seen) == 2:
            run.end(Outcome.SUCCEEDED)
    assert seen == [("running", None), ("running", 1), ("succeeded", 1)]


def test_waiting_ends_at_its_time_limit_and_the_job_goes_on(client: Client) -> None:
    job = client.submit(device="cuda:9", train=TRAIN)
    with pytest.raises(WaitTimeoutError, match="still queued"):
        client.wait(job.id, timeout_s=0.05, poll_s=0.01)
    assert client.get(job.id).state == "queued"


def test_following_outlasts_a_restart_of_the_service(sqlite_url: str, tmp_path: Path) -> None:
    with ApiServer(sqlite_url, tmp_path) as api, api.client() as client:
        run = start_job(api.database, api.submit(device="0,1"))
        updates = client.follow(run.job_id, poll_s=0.01)
        assert next(updates).state == "running"
        api.stop()
        with pytest.raises(UnreachableError):
            client.get(run.job_id)
        rest: list[str] = []
        follower = threading.Thread(target=lambda: rest.extend(job.state for job in updates))
        follower.start()
        run.end(Outcome.SUCCEEDED)
        api.start()
        follower.join(timeout=30)
        assert rest == ["succeeded"]


def test_where_nothing_listens_the_error_says_how_to_start_a_service() -> None:
    claim = PortClaim()
    with Client(f"http://127.0.0.1:{claim.port}") as client, pytest.raises(UnreachableError, match="rankzero up"):
        client.get(1)
    claim.release()


def test_what_is_no_rankzero_service_is_said_to_be_none() -> None:
    class Other(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<html>hello</html>")

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Other) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with Client(f"http://127.0.0.1:{server.server_port}") as client, pytest.raises(RefusedError, match="is no"):
            client.get(1)
        server.shutdown()


@pytest.mark.parametrize("url", ["nonsense", "ftp://example.org", "http://[", "http://a b"])
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises((UsageError, UnreachableError)), Client(url) as client:
        client.get(1)
