"""The Python client against a real API."""

import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import update

from jobs.states import Outcome
from jobs.store import hosts
from jobs.store.reports import CheckpointFile, LogPiece, MetricPoint
from jobs.tables import Host
from rankzero import Client
from rankzero.errors import MissingPackageError, RefusedError, UnreachableError, UsageError
from tests.api_server import TRAIN, ApiServer
from tests.integration.running_job import start_job
from tests.integration.scripted_server import Scripted, scripted_server

AT = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def api(keyed: ApiServer) -> ApiServer:
    """One server for all, which has a key to seal secrets with."""
    return keyed


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
    for limit in (0, 1, 2, 3, 9):
        assert [job.id for job in client.list(labels={"of": "list"}, sort="id", limit=limit)] == mine[:limit]


def test_a_change_may_be_made_on_the_condition_that_nobody_has_made_another_since(client: Client) -> None:
    seen = client.submit(device="cpu", train=TRAIN, labels={"of": "edits"})

    assert client.change(seen.id, priority=60, seen=seen).priority == 60
    with pytest.raises(RefusedError, match="has been edited since") as refused:
        client.change(seen.id, labels={"of": None}, seen=seen)

    assert refused.value.status == 412
    assert client.change(seen.id, labels={"of": None}, seen=client.get(seen.id)).labels == {}


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


@pytest.mark.parametrize("name", ["\ud800", "n" * 70_000], ids=["no text", "too long"])
def test_what_no_url_can_have_is_refused_before_it_is_sent(client: Client, name: str) -> None:
    for ask in (lambda: list(client.list(name=name)), lambda: client.user(name), lambda: client.drain(name)):
        with pytest.raises(UsageError, match=r"no text|cannot be asked for"):
            ask()


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


ALIEN = [b"<html>hello</html>", b"[]", b"null", b"[" * 100_000]


@pytest.mark.parametrize("body", [*ALIEN, b'{"items": 1}'], ids=range(5))
def test_what_is_no_rankzero_service_is_said_to_be_none(body: bytes) -> None:
    with scripted_server(Scripted(200, {}, body)) as server, Client(server.url) as client:
        for ask in (client.hosts, lambda: list(client.list()), lambda: list(client.events(1)), lambda: client.get(1)):
            with pytest.raises(RefusedError, match=r"is no RankZero service|differ in version"):
                ask()
        with pytest.raises(RefusedError, match="is no RankZero service"):
            list(client.follow(1))


@pytest.mark.parametrize("data", ALIEN, ids=range(4))
def test_events_that_are_none_of_a_service_of_ours_are_said_to_be_none(data: bytes) -> None:
    events = Scripted(200, {"Content-Type": "text/event-stream"}, b"event: jobs\ndata: " + data + b"\n\n")
    refused = pytest.raises(RefusedError, match="is no RankZero service")
    with scripted_server(events) as server, Client(server.url) as client, refused:
        list(client.stream())


@pytest.mark.parametrize("url", ["nonsense", "ftp://example.org", "http://[", "http://a b"])
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises((UsageError, UnreachableError)), Client(url) as client:
        client.get(1)


def test_certificates_that_there_are_not_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nonexistent/authorities.pem")
    for url in ("http://127.0.0.1:1", "https://rankzero.example.org"):
        with pytest.raises(UsageError, match="SSL_CERT_FILE"):
            Client(url)


def test_metrics_come_by_step_thinned_and_as_a_frame_with_what_is_not_finite_as_it_is(
    api: ApiServer, client: Client
) -> None:
    run = start_job(api.database, api.submit(device="0,1"))
    kinds = {1: "nan", 2: "inf", 3: "-inf"}
    run.add(
        metrics=[MetricPoint("nan", step, 1, AT, None if step in kinds else 0.5, kinds.get(step)) for step in range(9)]
        + [MetricPoint("1", step, 1, AT, float(step)) for step in range(1000)]
    )

    assert [metric.step for metric in client.metrics(run.job_id, names=["1"], from_step=3, to_step=5)] == [3, 4, 5]
    thinned = [metric.step for metric in client.metrics(run.job_id, names=["1"], points=10)]
    assert (thinned[0], thinned[-1], len(thinned) <= 10) == (0, 999, True)
    assert [(each.name, each.count, each.last_value) for each in client.metric_names(run.job_id)] == [
        ("1", 1000, 999),
        ("nan", 9, 0.5),
    ]
    frame = client.metrics_frame(run.job_id)
    assert list(frame.columns) == ["name", "step", "epoch", "attempt", "at", "value"]
    assert str(frame["at"].iloc[0]) == "2026-03-01 00:00:00+00:00"
    wide = frame.pivot(index="step", columns="name", values="value")
    assert [str(value) for value in wide["nan"].iloc[:5]] == ["0.5", "nan", "inf", "-inf", "0.5"]
    assert wide["1"].tolist() == list(range(1000))
    assert len(client.metrics_frame(run.job_id, names=["1"], points=10)) == len(thinned)
    assert client.metrics_frame(api.submit()).empty


def test_without_pandas_a_frame_says_how_to_install_it(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'rankzero\[pandas\]'"):
        client.metrics_frame(1)


def test_the_last_lines_of_output_and_the_lines_with_a_text_are_found(api: ApiServer, client: Client) -> None:
    run = start_job(api.database, api.submit(device="0,1"))
    run.add(logs=[LogPiece(0, 0, "one\ntwo\n"), LogPiece(1, 0, "One\n")])
    tail = list(client.logs(run.job_id, tail=1))
    assert [(chunk.rank, chunk.text) for chunk in tail] == [(0, "two\n"), (1, "One\n")]
    run.add(logs=[LogPiece(0, 8, "three\n")])
    assert [chunk.text for chunk in client.logs(run.job_id, after=tail[-1].id)] == ["three\n"]
    assert [chunk.rank for chunk in client.logs(run.job_id, search="one", ignore_case=True)] == [0, 1]
    assert [chunk.rank for chunk in client.logs(run.job_id, search="one")] == [0]


def test_jobs_are_found_by_every_filter_and_events_by_their_kind(api: ApiServer, client: Client) -> None:
    before = datetime.now(UTC) - timedelta(minutes=1)
    run = start_job(api.database, api.submit(device="0,1", priority=77, train=TRAIN | {"model": "resnet50"}))
    run.end(Outcome.SUCCEEDED)
    wanted: dict[str, Any] = {
        "priority": 77,
        "recipe": "classification",
        "model": "resnet50",
        "host": run.placement.host_name,
    }
    times: dict[str, Any] = {"created_after": before, "finished_after": before}

    assert [job.id for job in client.list(**wanted, **times)] == [run.job_id]
    assert not list(client.list(**wanted, created_before=before))
    for name, other in {"priority": 78, "recipe": "detection", "model": "resnet18", "host": "nowhere"}.items():
        assert run.job_id not in [job.id for job in client.list(**wanted | {name: other})]
    assert [event.to_state for event in client.events(run.job_id, kinds=["submitted"])] == ["queued"]


def test_hosts_and_devices_are_shown_drained_quarantined_and_taken_back(api: ApiServer, client: Client) -> None:
    run = start_job(api.database, api.submit(device="0,1"))
    name = run.placement.host_name

    assert client.host(name).name == name
    assert client.drain(name, note="fans").drain_note == "fans"
    assert client.undrain(name).drained_at is None
    client.quarantine(name, "cuda:1", reason="it is hot")
    device = client.device(name, "cuda:1")
    assert (device.quarantine_reason, device.held_by) == ("it is hot", {"job_id": run.job_id, "attempt": 1})
    client.release(name, "cuda:1")
    assert client.device(name, "cuda:1").quarantined_at is None
    assert list(client.host_telemetry(name)) == list(client.job_telemetry(run.job_id)) == []
    with pytest.raises(RefusedError, match=r"has not ended|reports"):
        client.remove_host(name)


def test_what_hosts_can_train_is_listed_and_shown(api: ApiServer, client: Client) -> None:
    recipe = {"name": "next-byte", "description": "text", "models": ["tiny"], "options_schema": {"type": "object"}}
    known = {"recipes": [recipe], "data": [{"name": "letters", "description": "many"}], "train_schema": {}}
    with api.database.session_scope() as session:
        hosts.register(session, "catalogued", worker="1:1", run_root="/runs", devices=[])
        hosts.set_catalog(session, "catalogued", known)
    try:
        assert [each.name for each in client.recipes()] == ["next-byte"]
        assert client.recipe("next-byte").variants[0].options_schema == {"type": "object"}
        assert [each.name for each in client.data_sets()] == ["letters"]
        assert client.data_set("letters").hosts == ("catalogued",)
    finally:
        with api.database.session_scope() as session:
            session.execute(update(Host).values(catalog=None))  # which would refuse what the other tests train


def test_users_tokens_and_secrets_are_made_changed_and_taken_away(api: ApiServer) -> None:
    with api.client() as client:
        assert (client.me().role, client.me().access) == ("admin", "loopback")
        client.create_user("bob", role="viewer")
        assert client.change_user("bob", role="submitter").role == "submitter"
        made = client.create_token("pipeline", user="bob", role="viewer", expires_at=datetime.now(UTC) + timedelta(1))
        assert (made.user, made.role, made.token[:3]) == ("bob", "viewer", "rz_")
        assert made.token not in repr(made)
        client.revoke_token(made.id)
        assert [each.revoked_at is None for each in client.tokens(user="bob")] == [False]
        assert client.change_user("bob", disabled=True).disabled_at is not None
        assert client.user("bob").name in [each.name for each in client.users()]
        assert client.set_secret("wandb", "0123456789").name == "wandb"
        assert [each.name for each in client.secrets()] == ["wandb"]
        client.delete_secret("wandb")
        assert [each.action for each in client.audit(subject="secrets/wandb")] == ["delete_secret", "put_secret"]


def test_webhooks_are_registered_changed_tested_and_removed(api: ApiServer) -> None:
    with api.client() as client:
        made = client.create_webhook("https://example.org/hook", topics=["job.failed"], labels={"of": "client"})
        assert made.key not in repr(made)
        assert client.rotate_webhook_key(made.id).key != made.key
        assert client.change_webhook(made.id, description="ours").description == "ours"
        assert client.change_webhook(made.id, topics=[]).description == "ours"
        assert client.change_webhook(made.id, description=None).description is None
        assert client.webhook(made.id).labels == {"of": "client"}
        delivery = client.test_webhook(made.id)
        assert client.redeliver(made.id, delivery.id).message_id == delivery.message_id
        assert [each.id for each in client.deliveries(made.id)] == [delivery.id]
        client.delete_webhook(made.id)
        assert made.id not in [each.id for each in client.webhooks()]
