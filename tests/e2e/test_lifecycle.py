"""A job in its user's hands: paused on two devices, gone on with on one other, its weights taken up by a third."""

from collections.abc import Sequence

import pytest

from rankzero.client import Client
from rankzero.models import Attempt, Job
from tests.service import DIGITS
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(300)

STEPS_PER_EPOCH = 23
TRAIN = DIGITS | {"schedule": "constant", "dropout": 0, "epochs": 40, "lr": 0.001}
"""Long enough to be paused in its midst; without dropout, whose draws depend on the ranks."""


def test_a_job_paused_on_two_devices_goes_on_with_the_same_samples_on_one_other(client: Client) -> None:
    job = client.submit(device="0,1", train=TRAIN)
    wait_until(lambda: step_of(client.get(job.id)) >= 3, timeout_s=120, what="the job to train")
    client.pause(job.id)
    wait_until(lambda: client.get(job.id).state == "paused", timeout_s=60, what="the job to pause")
    assert all(device.held_by is None for host in client.hosts() for device in host.devices)
    last = max(client.checkpoints(job.id), key=lambda checkpoint: checkpoint.step)

    epochs = last.step // STEPS_PER_EPOCH + 1
    twin = client.clone(job.id, {"train": {"epochs": epochs}}, start_from={"mode": "resume"})
    client.resume(job.id, device="5")
    over = client.wait(twin.id, timeout_s=120)
    end = epochs * STEPS_PER_EPOCH
    wait_until(lambda: step_of(client.get(job.id)) >= end, timeout_s=120, what="the job to get as far")
    client.cancel(job.id)

    assert over.state == "succeeded", over.failure
    assert (over.parent_id, over.parent_checkpoint_id) == (job.id, last.id)
    moved = client.attempts(job.id)[1]
    assert [device.name for placement in moved.placements for device in placement.devices] == ["cuda:5"]
    for each in (only(client.attempts(twin.id)), moved):
        assert (each.resumed_step, each.resume_checkpoint_id) == (last.step, last.id)
    steps = range(last.step + 1, end + 1)
    on_one, on_two = losses(client, job.id), losses(client, twin.id)
    assert sorted(on_two) == list(steps)
    # The same samples in the same order: what differs is in which order two ranks' gradients are added up.
    assert [on_one[step] for step in steps] == pytest.approx([on_two[step] for step in steps], rel=1e-3)
    assert client.wait(job.id, timeout_s=60).state == "cancelled"

    begun = client.clone(twin.id, {"train": {"epochs": 1}}, start_from={"mode": "weights"})
    assert client.wait(begun.id, timeout_s=120).state == "succeeded"
    assert only(client.attempts(begun.id)).resumed_step is None
    # It begins at its own first step, with weights that are trained already.
    fresh, trained = losses(client, job.id), losses(client, begun.id)
    assert sorted(trained) == list(range(1, STEPS_PER_EPOCH + 1))
    assert trained[1] < fresh[1]


def step_of(job: Job) -> int:
    return (job.progress.step or 0) if job.progress is not None else 0


def losses(client: Client, job_id: int) -> dict[int, float]:
    """The training loss of each step."""
    values = {metric.step: metric.value for metric in client.metrics(job_id, names=["train/loss"])}
    return {step: value for step, value in values.items() if value is not None}


def only(attempts: Sequence[Attempt]) -> Attempt:
    (attempt,) = attempts
    return attempt
