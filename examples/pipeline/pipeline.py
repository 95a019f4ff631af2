"""A pipeline: submit a job, be told of its end by webhook, fetch its best checkpoint, and evaluate it before use.

RANKZERO_WEBHOOK_ALLOW=127.0.0.1 rankzero up     # the receiver below is on this machine
python examples/pipeline/pipeline.py             # in another terminal
"""

import argparse
import hashlib
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
from receiver import Receiver

import rankzero
from rankzero.models import Checkpoint
from trainer.reload import evaluate_checkpoint

ENDS = ["job.succeeded", "job.failed", "job.cancelled"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--url", help="the service; else RANKZERO_URL, else this machine")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--min-accuracy", type=float, default=0.5, help="below which the model is not used")
    parser.add_argument("--timeout-s", type=float, default=600, help="how long the job may take")
    options = parser.parse_args()

    train = {
        "model": "squeezenet1_1",
        "data": "digits",
        "image_size": 32,
        "epochs": options.epochs,
        "batch": 64,
        "lr": 0.01,
        "num_workers": 0,
    }
    with (
        rankzero.Client(options.url) as client,
        httpx2.Client(base_url=client.url) as api,
        Receiver("127.0.0.1", 0) as receiver,
        # A label of this run alone: the webhook is told of no other job.
        told_of({"pipeline": uuid.uuid4().hex}, api, receiver) as labels,
    ):
        job = client.submit(name="pipeline", device="cpu", labels=labels, train=train)
        print(f"job {job.id} is {job.state}")

        message = receiver.wait_for(job.id, timeout_s=options.timeout_s)
        print(f"told by webhook: {message['type']}")

        job = client.get(job.id)  # a message is news; what counts is what the service says
        if job.state != "succeeded":
            sys.exit(f"job {job.id} {job.state}: {job.failure.message if job.failure else 'no reason given'}")
        best = next(checkpoint for checkpoint in client.checkpoints(job.id) if checkpoint.best)
        with tempfile.TemporaryDirectory() as folder:
            path = fetch(api, job.id, best, Path(folder))
            accuracy = evaluate_checkpoint(path)["val/accuracy"]
    print(
        f"checkpoint {best.id}, step {best.step}: accuracy {accuracy:.4f}, {best.values['val/accuracy']:.4f} in the job"
    )
    if accuracy < options.min_accuracy:
        sys.exit(f"not used: the accuracy is below {options.min_accuracy}")
    print("fit for use")


@contextmanager
def told_of(labels: dict[str, str], api: httpx2.Client, receiver: Receiver) -> Iterator[dict[str, str]]:
    """Register the receiver for the ends of jobs with these labels, for as long as the block takes."""
    answer = api.post("/webhooks", json={"url": receiver.url, "topics": ENDS, "labels": labels})
    if answer.is_error:
        sys.exit(f"the webhook was not registered: {answer.json()['detail']}")
    webhook = answer.json()
    receiver.key = webhook["key"]
    try:
        yield labels
    finally:
        api.delete(f"/webhooks/{webhook['id']}")


def fetch(api: httpx2.Client, job_id: int, checkpoint: Checkpoint, folder: Path) -> Path:
    """Download a checkpoint's file into a folder, whole or not at all."""
    path, digest = folder / "best.pt", hashlib.sha256()
    with api.stream("GET", f"/jobs/{job_id}/checkpoints/{checkpoint.id}/file") as answer, path.open("wb") as file:
        answer.raise_for_status()
        for part in answer.iter_bytes():
            digest.update(part)
            file.write(part)
    if digest.hexdigest() != checkpoint.sha256:
        sys.exit(f"checkpoint {checkpoint.id} arrived damaged")
    return path


if __name__ == "__main__":
    main()
