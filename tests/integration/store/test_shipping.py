"""A run directory on its way into the database: each of its files' records once, and one that is refused stops none."""

from pathlib import Path

from sqlalchemy import select

from jobs.tables import MetricBucket
from tests.integration.store.conftest import Service
from tests.integration.store.reported import logs, refreshed, series
from tests.integration.written_run import write_run
from trainer.journal import EpochEnd, JournalWriter, Metrics, Started
from trainer.run_dir import RunDir
from worker.shipping import CLASSES, Shipper


def test_a_run_directory_is_in_the_database_once_however_often_it_is_shipped(service: Service, tmp_path: Path) -> None:
    placement = service.claim(service.launch("0,1"))
    placement.run_dir = str(tmp_path)
    write_run(RunDir(tmp_path))
    Shipper(service.database, placement).ship(final=True)
    before = service.everything()

    Shipper(service.database, refreshed(service, placement)).ship(final=True)

    assert service.everything() == before
    job = service.job(placement.job_id)
    assert job.state == "running"
    assert job.progress == {
        "world_size": 2,
        "batch": 64,
        "batch_per_rank": 32,
        "accumulate": 4,
        "micro_batches": 1,
        "epochs": 1,
        "steps_per_epoch": 2,
        "total_steps": 2,
        "parameters": 99,
        "step": 2,
        "epoch": 1,
        "values": {"loss": None, "accuracy": 0.97},
    }
    assert series(service, job.id) == [("loss", 1, 0.5), ("loss", 2, None)]
    assert [chunk.text for chunk in logs(service, job.id)] == ["hello\n", "no newline"]
    assert [event.kind for event in service.events(job.id)] == ["submitted", "state", "state", "log", "epoch"]


def test_a_record_whose_values_the_database_refuses_is_named_and_the_others_are_kept(
    postgres_service: Service, tmp_path: Path
) -> None:
    service = postgres_service
    placement = service.claim(service.launch("0"))
    placement.run_dir = str(tmp_path)
    journal = JournalWriter(RunDir(tmp_path).journal)
    journal.append(Started, world_size=1, devices=("cuda:0",))
    for step, epoch in ((1, 1), (2, 2**31), (3, 1)):
        journal.append(Metrics, step=step, epoch=epoch, values={"loss": 0.5})
    journal.close()

    Shipper(service.database, placement).ship(final=True)

    assert series(service, placement.job_id) == [("loss", 1, 0.5), ("loss", 3, 0.5)]
    with service.database.session_scope(read_only=True) as session:
        (bucket,) = session.scalars(select(MetricBucket))
    assert (bucket.count, bucket.first_step, bucket.last_step) == (2, 1, 3)
    (told,) = [event.detail["message"] for event in service.events(placement.job_id) if event.kind == "log"]
    assert told.startswith("journal record 2 (metrics) was refused")
    assert "out of range" in told


def test_an_epoch_tells_each_class_s_figures_unless_there_are_too_many_to_read(
    service: Service, tmp_path: Path
) -> None:
    placement = service.claim(service.launch("0"))
    placement.run_dir = str(tmp_path)
    journal = JournalWriter(RunDir(tmp_path).journal)
    journal.append(Started, world_size=1, devices=("cuda:0",))
    for epoch, classes in enumerate((CLASSES, CLASSES + 1), start=1):
        by_class = {f"class {number}": {"correct": 1.0, "samples": 2.0} for number in range(classes)}
        journal.append(EpochEnd, epoch=epoch, step=epoch, seconds=1.5, values={}, by_class=by_class)
    journal.close()

    Shipper(service.database, placement).ship(final=True)

    few, many = (event.detail for event in service.events(placement.job_id) if event.kind == "epoch")
    assert len(few["by_class"]) == CLASSES
    assert few["by_class"]["class 7"] == {"correct": 1.0, "samples": 2.0}
    assert many["by_class"] == {}
    assert many["note"] == f"figures of {CLASSES + 1} classes are only in the run directory's journal"
