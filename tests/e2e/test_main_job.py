"""The main job: from POST over HTTP through two ranks to metrics and a checkpoint, on PostgreSQL."""

import hashlib
import re
from pathlib import Path

import pytest

from rankzero.client import Client
from rankzero.errors import RefusedError
from tests.service import DIGITS
from trainer.checkpoints import load_checkpoint
from trainer.journal import Started, read_records

pytestmark = pytest.mark.timeout(300)


def test_a_job_posted_for_two_devices_trains_and_all_it_reports_comes_back(client: Client) -> None:
    job = client.submit(name="main", device=["cuda:10", "cuda:11"], labels={"team": "vision"}, train=DIGITS)
    assert job.warnings == ()

    over = client.wait(job.id, timeout_s=120)

    assert (over.state, over.attempt) == ("succeeded", 1)
    (attempt,) = client.attempts(job.id)
    (placement,) = attempt.placements
    assert [(device.name, device.simulated) for device in placement.devices] == [("cuda:10", True), ("cuda:11", True)]
    started = next(read_records(Path(placement.run_dir) / "journal.jsonl"))
    assert isinstance(started, Started)
    assert (started.batch, started.batch_per_rank) == (64, 32)  # of those it was given, not of all that the host has
    assert (started.world_size, started.devices) == (2, ("cuda:10 (simulated)", "cuda:11 (simulated)"))
    told = (Path(placement.run_dir) / "trainer.log").read_text().splitlines()
    assert [line for line in told if "of this run" in line] == [
        f"cuda:{number} of this run is cuda:{number} of host alpha, simulated" for number in (10, 11)
    ]
    losses = list(client.metrics(job.id, names=["train/loss"]))
    assert [metric.step for metric in losses] == list(range(1, 47))  # 2 epochs of 23 steps, each once
    accuracy = list(client.metrics(job.id, names=["val/accuracy"]))
    assert [metric.step for metric in accuracy] == [23, 46]
    for checkpoint in client.checkpoints(job.id):
        content = Path(checkpoint.path).read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (checkpoint.size_bytes, checkpoint.sha256)
    states = [event.to_state for event in client.events(job.id) if event.kind == "state"]
    assert states == ["starting", "running", "succeeded"]
    assert all(device.held_by is None for host in client.hosts() for device in host.devices)


def test_a_new_job_resumes_from_the_checkpoint_of_another(client: Client) -> None:
    first = client.submit(device="0", train=DIGITS | {"epochs": 1, "schedule": "constant"})
    client.wait(first.id, timeout_s=120)
    (checkpoint,) = client.checkpoints(first.id)
    longer = DIGITS | {"epochs": 2, "schedule": "constant", "resume": checkpoint.path}
    second = client.submit(device="cpu", nproc_per_node=2, train=longer)
    assert client.wait(second.id, timeout_s=120).state == "succeeded"
    assert client.attempts(second.id)[0].resumed_step == checkpoint.step
    assert min(metric.step for metric in client.metrics(second.id)) > checkpoint.step


def test_a_learning_rate_that_ruins_the_loss_fails_once_with_its_step_and_spares_the_last_finite_checkpoint(
    client: Client,
) -> None:
    job = client.submit(device="0", train=DIGITS | {"lr": 1e6, "save_every": 1})
    failed = client.wait(job.id, timeout_s=120)
    assert failed.state == "failed"
    assert [attempt.outcome for attempt in client.attempts(job.id)] == ["failed"]
    assert failed.failure is not None
    assert failed.failure.cause == "non_finite_loss"
    named = re.search(r"step (\d+)\b", failed.failure.message)
    assert named is not None, failed.failure.message
    checkpoints = list(client.checkpoints(job.id))
    assert max(checkpoint.step for checkpoint in checkpoints) == int(named[1]) - 1
    for checkpoint in checkpoints:
        weights = load_checkpoint(Path(checkpoint.path), verify_digest=True).model
        assert all(tensor.isfinite().all() for tensor in weights.values())


def test_a_corrupt_checkpoint_to_resume_from_fails_at_once_and_is_named(client: Client, tmp_path: Path) -> None:
    broken = tmp_path / "broken.pt"
    broken.write_bytes(b"PK\x03\x04 this is no checkpoint")
    job = client.submit(device="0", train=DIGITS | {"resume": str(broken)})
    failed = client.wait(job.id, timeout_s=120)
    assert (failed.state, failed.attempt) == ("failed", 1)
    assert failed.failure is not None
    assert failed.failure.cause == "checkpoint"
    assert str(broken) in failed.failure.message


def test_an_empty_data_folder_fails_at_once_and_is_named(client: Client, tmp_path: Path) -> None:
    job = client.submit(device="0", train=DIGITS | {"data": str(tmp_path)})
    failed = client.wait(job.id, timeout_s=120)
    assert (failed.state, failed.attempt) == ("failed", 1)
    assert failed.failure is not None
    assert failed.failure.cause == "data"
    assert str(tmp_path) in failed.failure.message


@pytest.mark.parametrize(
    ("train", "field", "hint"),
    [
        ({"model": "resnet5o"}, "train.model", "resnet50"),
        ({"data": "digit"}, "train.data", "digits"),
        ({"recipe": "classify"}, "train.recipe", "classification"),
        ({"batch": 5}, "train.batch", "4 or 6"),
        ({"learning_rate": 1}, "train.learning_rate", "no such field"),
    ],
)
def test_a_name_that_no_host_knows_is_refused_before_anything_starts(
    client: Client, train: dict[str, object], field: str, hint: str
) -> None:
    with pytest.raises(RefusedError) as refused:
        client.submit(device="0,1", train=DIGITS | train)
    assert hint in refused.value.fields[field]


def test_a_device_that_no_host_has_is_accepted_with_a_warning_and_a_reason(client: Client) -> None:
    job = client.submit(device="0,12", train=DIGITS)
    assert job.state == "queued"
    assert "no registered host has cuda:0 and cuda:12" in job.warnings[0]
    assert "no registered host has cuda:0 and cuda:12" in (client.get(job.id).reason or "")
    assert client.cancel(job.id).state == "cancelled"
