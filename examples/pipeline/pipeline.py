"""A pipeline: submit a job, be told of its end by webhook, fetch its best checkpoint, and evaluate it before use.

RANKZERO_WEBHOOK_ALLOW=127.0.0.1 rankzero up     # the receiver below is on this machine
python examples/pipeline/pipeline.py             # in another terminal
"""

import argparse
import queue
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from receiver import Receiver

import rankzero
from rankzero.errors import RankzeroError
from trainer.reload import evaluate_checkpoint

ENDS = ["job.succeeded", "job.failed", "job.cancelled"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--url", help="the service; else RANKZERO_URL, else this machine")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--min-accuracy", type=float, default=0.9, help="below which the model is not used")
    parser.add_argument("--timeout-s", type=float, default=600, help="how long the job may take")
    options = parser.parse_args()
    try:
        # Where the service asks for a token, that of RANKZERO_TOKEN, or one that `rankzero login` has stored.
        with rankzero.Client(options.url) as client:
            run(client, epochs=options.epochs, min_accuracy=options.min_accuracy, timeout_s=options.timeout_s)
    except RankzeroError as error:
        sys.exit(str(error))


def run(client: rankzero.Client, *, epochs: int, min_accuracy: float, timeout_s: float) -> None:
    """Go once through the pipeline; what does not get to its end exits with the reason."""
    train = {
        "model": "resnet18",
        "data": "digits",
        "image_size": 32,
        "epochs": epochs,
        "batch": 64,
        "lr": 0.02,
        "num_workers": 0,
    }
    # A label of this run alone: the webhook is told of no other job.
    labels = {"pipeline": uuid.uuid4().hex}
    with Receiver("127.0.0.1", 0) as receiver, told_of(labels, client, receiver):
        job = client.submit(name="pipeline", device="cpu", labels=labels, train=train)
        print(f"job {job.id} is {job.state}")
        try:
            message = receiver.wait_for(job.id, timeout_s=timeout_s)
        except queue.Empty:
            sys.exit(f"job {job.id} is not over after {timeout_s:g} s, or nobody could tell")
        print(f"told by webhook: {message['type']}")

    job = client.get(job.id)  # a message is news; what counts is what the service says
    if job.state != "succeeded":
        sys.exit(f"job {job.id} {job.state}: {job.failure.message if job.failure else 'no reason given'}")
    best = client.checkpoint(job.id, "best")
    with tempfile.TemporaryDirectory() as folder:
        # Whole and with the SHA-256 that it was saved with, or not at all.
        accuracy = evaluate_checkpoint(client.download_checkpoint(job.id, best.id, folder))["val/accuracy"]
    told = best.values["val/accuracy"]
    print(f"checkpoint {best.id}, step {best.step}: accuracy {accuracy:.4f}, {told:.4f} in the job")
    if accuracy < min_accuracy:
        sys.exit(f"not used: the accuracy is below {min_accuracy}")
    print("fit for use")


@contextmanager
def told_of(labels: dict[str, str], client: rankzero.Client, receiver: Receiver) -> Iterator[None]:
    """Register the receiver for the ends of jobs with these labels, for as long as the block takes."""
    webhook = client.create_webhook(receiver.url, topics=ENDS, labels=labels)
    receiver.key = webhook.key
    try:
        yield
    finally:
        client.delete_webhook(webhook.id)


if __name__ == "__main__":
    main()
