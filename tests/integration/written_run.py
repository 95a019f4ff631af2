"""A run directory as a run leaves it."""

from trainer.journal import CheckpointSaved, Completed, EpochEnd, JournalWriter, Log, Metrics, Started
from trainer.run_dir import RunDir


def write_run(run_dir: RunDir) -> None:
    """The files of a whole small run on two ranks."""
    run_dir.ranks.mkdir()
    run_dir.log(0).write_text("hello\n")
    run_dir.log(1).write_text("no newline")
    journal = JournalWriter(run_dir.journal)
    journal.append(
        Started,
        world_size=2,
        devices=("cuda:0", "cuda:1"),
        batch=64,
        batch_per_rank=32,
        accumulate=4,
        epochs=1,
        steps_per_epoch=2,
        total_steps=2,
        parameters=99,
    )
    journal.append(Log, level="warning", message="one file was passed over")
    journal.append(Metrics, step=1, epoch=1, values={"loss": 0.5})
    journal.append(Metrics, step=2, epoch=1, values={"loss": None}, nonfinite={"loss": "nan"})
    journal.append(CheckpointSaved, step=2, epoch=1, path="checkpoints/2.pt", sha256="0" * 64, size_bytes=10, best=True)
    journal.append(EpochEnd, epoch=1, step=2, seconds=1.5, values={"accuracy": 0.97})
    journal.append(Completed, step=2, epoch=1, values={"accuracy": 0.97}, best_checkpoint="checkpoints/2.pt")
    journal.close()
