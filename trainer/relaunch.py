"""The relaunch: ranks that ran out of a device's memory are started anew, on smaller parts of the same global batch."""

from contextlib import closing
from itertools import takewhile

from trainer.config import SCRIPT
from trainer.durable_files import write_atomic
from trainer.error_report import ErrorReport
from trainer.journal import JournalWriter, Log, Started, read_backwards
from trainer.micro_batches import devices_of, is_out_of_device_memory, more_parts
from trainer.run_dir import RunConfig, RunDir


def last_seq(run_dir: RunDir) -> int:
    """Return the number of the journal's last record, or -1 where it has none. Raises JournalError."""
    last = next(read_backwards(run_dir.journal), None)
    return -1 if last is None else last.seq


def smaller_parts(run_dir: RunDir, config: RunConfig, error: ErrorReport, *, since: int) -> RunConfig | None:
    """Return what to run in place of `config`, whose ranks have ended by `error`, or None where that is the end.

    `since` is the number of the last record from before those ranks. They are started anew where a device's memory ran
    out after they had begun to train (a model that does not fit by itself is not helped), and a device's share of a
    batch can be cut further. The other nodes of a run have launchers of their own, which do not know.
    """
    if config.nnodes > 1 or config.train.recipe == SCRIPT or not is_out_of_device_memory(error):
        return None
    newer = takewhile(lambda record: record.seq > since, read_backwards(run_dir.journal))
    started = next((record for record in newer if isinstance(record, Started)), None)
    if started is None or started.batch is None:
        return None
    parts = more_parts(started.batch // devices_of(config), config.micro_batches)
    if parts is None:
        return None
    # A batch that was measured stays what it was: the steps are counted in it.
    train = config.train.model_copy(update={"batch": started.batch})
    return config.model_copy(update={"train": train, "micro_batches": parts})


def commit(run_dir: RunDir, config: RunConfig, error: ErrorReport) -> None:
    """Make `config` the run's, and say in the journal what happened and what it costs. Raises OSError, JournalError."""
    saved, reached = run_dir.last_checkpoint(), run_dir.read_progress(0)
    size = config.train.batch // devices_of(config) // config.micro_batches
    begin = f"step {saved.step}" if saved is not None else "the start of this run"
    lost = f" (step {reached.step} had been reached)" if reached is not None and reached.step else ""
    message = (
        f"{error.said.rstrip('.')}: the ranks start anew from {begin}{lost} and go on with the same batch of "
        f"{config.train.batch} in {config.micro_batches} parts, {size} {'sample' if size == 1 else 'samples'} on each "
        "device at a time, whose gradients are added up"
    )
    write_atomic(run_dir.config, config.model_dump_json(indent=2).encode())
    with closing(JournalWriter(run_dir.journal)) as journal:
        journal.append(Log, level="warning", durable=True, message=message)
