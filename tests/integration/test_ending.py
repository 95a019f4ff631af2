"""The end of a placement from its files: whatever state they are in, the attempt ends and its devices come free."""

import errno
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from jobs.database import Database
from jobs.errors import StaleAttemptError
from jobs.states import Intent, Outcome
from jobs.store import attempts, jobs
from jobs.tables import Placement
from tests.integration.store.conftest import Service
from tests.integration.written_run import write_run
from tests.mounts import read_only
from trainer.config import TrainConfig
from trainer.error_report import ErrorReport
from trainer.errors import Cause, os_error_cause
from trainer.journal import JournalWriter, Log
from trainer.run_dir import EXIT_FAILED, EXIT_INTERRUPTED, Progress, RunConfig, RunDir
from worker import ending, failure_reports
from worker.clock import clock

REPORT = ErrorReport(cause=Cause.KILLED_BY_SIGNAL, message="the trainer was ended by SIGKILL", time=datetime.now(UTC))


@pytest.fixture
def service(database_url: str) -> Iterator[Service]:
    service = Service(Database(database_url))
    service.register()
    yield service
    service.database.dispose()


def place(service: Service, folder: Path, **fields: object) -> tuple[Placement, RunDir]:
    """A running placement whose run directory is `folder`."""
    placement = service.run("0,1", **fields)
    with service.database.session_scope() as session:
        attempts.get_placement(session, placement.id).run_dir = str(folder)
    placement.run_dir = str(folder)
    return placement, RunDir(folder)


def finish(service: Service, placement: Placement) -> str:
    conclusion = ending.finish(service.database, placement, REPORT)
    assert service.live_leases() == []
    assert conclusion is not None
    return conclusion.state


def test_a_run_with_its_completion_record_succeeded(service: Service, tmp_path: Path) -> None:
    placement, run_dir = place(service, tmp_path)
    write_run(run_dir)

    assert finish(service, placement) == "succeeded"
    assert service.attempts(placement.job_id)[0].failure is None


def test_what_is_copied_once_the_ranks_have_ended_takes_nothing_from_a_time_limit(
    service: Service, tmp_path: Path
) -> None:
    placement, _run_dir = place(service, tmp_path)
    service.trains_since(placement, seconds=330)

    ending.finish(service.database, placement, REPORT, ranks_ended_at=clock() - 300)

    with service.database.session_scope(read_only=True) as session:
        assert attempts.trained_s(session, placement.job_id) == pytest.approx(30, abs=5)


def test_an_error_file_says_more_than_an_exit_status(service: Service, tmp_path: Path) -> None:
    placement, run_dir = place(service, tmp_path)
    raised = ErrorReport(cause=Cause.EXCEPTION, message="ValueError: no such thing", rank=1, time=datetime.now(UTC))
    run_dir.error.write_text(raised.model_dump_json())

    assert finish(service, placement) == "failed"
    failure = service.job(placement.job_id).failure
    assert failure is not None
    assert (failure["message"], failure["rank"]) == ("ValueError: no such thing", 1)


def test_who_told_a_run_to_stop_knows_better_why_it_did(service: Service, tmp_path: Path) -> None:
    placement, run_dir = place(service, tmp_path)
    stopped = ErrorReport(cause=Cause.INTERRUPTED, message="stopped by SIGTERM", rank=0, time=datetime.now(UTC))
    run_dir.error.write_text(stopped.model_dump_json())

    ending.finish(service.database, placement, failure_reports.lost("cut off"))

    failure = service.job(placement.job_id).failure
    assert failure is not None
    assert (failure["cause"], failure["message"]) == ("lost", "cut off")


def test_a_run_that_was_stopped_by_nobody_we_know_tells_it_itself(service: Service, tmp_path: Path) -> None:
    placement, run_dir = place(service, tmp_path)
    stopped = ErrorReport(cause=Cause.INTERRUPTED, message="stopped by SIGTERM", rank=0, time=datetime.now(UTC))
    run_dir.error.write_text(stopped.model_dump_json())

    ending.finish(service.database, placement, failure_reports.exited(EXIT_INTERRUPTED))

    failure = service.job(placement.job_id).failure
    assert failure is not None
    assert failure["message"] == "stopped by SIGTERM"


def test_a_run_that_left_no_word_is_lost_and_tried_again(service: Service, tmp_path: Path) -> None:
    placement, _ = place(service, tmp_path / "never" / "made")

    assert finish(service, placement) == "queued"
    assert service.job(placement.job_id).failure == REPORT.model_dump(mode="json")


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"\xff\xfe", b'{"cause": "unheard of", "message": "x"}', b'{"message": "\\ud800"}'],
    ids=repr,
)
def test_a_damaged_error_file_does_not_keep_the_devices(service: Service, tmp_path: Path, content: bytes) -> None:
    placement, run_dir = place(service, tmp_path)
    run_dir.error.write_bytes(content)

    assert finish(service, placement) == "queued"


def test_a_failure_comes_with_the_last_lines_of_its_ranks_log(service: Service, tmp_path: Path) -> None:
    placement, run_dir = place(service, tmp_path)
    run_dir.ranks.mkdir()
    run_dir.log(1).write_text("".join(f"line {number}\n" for number in range(100)))
    raised = ErrorReport(cause=Cause.EXCEPTION, message="ValueError: no such thing", rank=1, time=datetime.now(UTC))
    run_dir.error.write_text(raised.model_dump_json())

    finish(service, placement)

    failure = service.job(placement.job_id).failure
    assert failure is not None
    assert failure["log_tail"].splitlines() == [f"line {number}" for number in range(60, 100)]


def test_a_rank_that_had_printed_nothing_gets_no_other_tail(service: Service, tmp_path: Path) -> None:
    placement, run_dir = place(service, tmp_path)
    run_dir.ranks.mkdir()
    run_dir.log(1).write_text("of after the report\n")
    hung = ErrorReport(cause=Cause.HANG, message="rank 1 hangs", rank=1, log_tail="", time=datetime.now(UTC))
    run_dir.error.write_text(hung.model_dump_json())

    finish(service, placement)

    assert service.attempts(placement.job_id)[0].failure == hung.model_dump(mode="json")


def test_a_failure_of_no_rank_comes_with_the_last_words_of_the_launcher(service: Service, tmp_path: Path) -> None:
    placement, run_dir = place(service, tmp_path)
    (run_dir.path / "trainer.log").write_text("the launcher's last word\n")

    finish(service, placement)

    failure = service.job(placement.job_id).failure
    assert failure is not None
    assert failure["log_tail"] == "the launcher's last word"


@pytest.mark.parametrize(("phase", "completed"), [("finished", True), ("training", False)])
def test_a_node_without_rank_0_has_done_its_part_once_all_its_ranks_have_passed_the_last_barrier(
    service: Service, tmp_path: Path, phase: str, completed: bool
) -> None:
    service.register("beta")
    first, second = service.run_on("alpha", "beta", device="0,1")
    with service.database.session_scope() as session:
        attempts.get_placement(session, second.id).run_dir = str(tmp_path)
    second.run_dir, run_dir = str(tmp_path), RunDir(tmp_path)
    train = TrainConfig(model="mlp", data="digits")
    run_dir.create(RunConfig(train=train, devices=("cuda:0", "cuda:1"), nnodes=2, node_rank=1, master_port=29400))
    for local_rank, reached in enumerate(("finished", phase)):
        progress = Progress.model_validate({"phase": reached, "step": 9, "time": datetime.now(UTC)})
        run_dir.progress(local_rank).write_text(progress.model_dump_json())

    assert ending.finish(service.database, second, REPORT) is None

    with service.database.session_scope(read_only=True) as session:
        assert attempts.get_placement(session, second.id).completed is completed
    assert service.state(first.job_id) == "running"


def damage_first_line(run_dir: RunDir) -> None:
    run_dir.journal.write_bytes(b"no record\n")


def damage_last_line(run_dir: RunDir) -> None:
    write_run(run_dir)
    run_dir.journal.write_bytes(run_dir.journal.read_bytes() + b"\x00\xff\n")


@pytest.mark.parametrize("damage", [damage_first_line, damage_last_line])
def test_a_damaged_journal_is_no_success_and_is_told(
    service: Service, tmp_path: Path, damage: Callable[[RunDir], None]
) -> None:
    placement, run_dir = place(service, tmp_path)
    damage(run_dir)

    assert finish(service, placement) == "queued"
    told = [event.detail for event in service.events(placement.job_id) if event.kind == "log"]
    assert "is no journal record" in told[-1]["message"]


def test_a_torn_last_line_is_passed_over(service: Service, tmp_path: Path) -> None:
    placement, run_dir = place(service, tmp_path)
    write_run(run_dir)
    with run_dir.journal.open("ab") as file:
        file.write(b'{"kind": "log", "seq"')

    assert finish(service, placement) == "succeeded"


def test_what_was_written_last_is_shipped_before_the_end(service: Service, tmp_path: Path) -> None:
    placement, run_dir = place(service, tmp_path)
    journal = JournalWriter(run_dir.journal)
    journal.append(Log, message="the last word")
    journal.close()

    finish(service, placement)

    kinds = [(event.kind, event.to_state) for event in service.events(placement.job_id)]
    assert kinds[-2:] == [("log", None), ("state", "queued")]


def test_a_run_whose_directory_has_gone_is_lost_and_not_a_fault_of_the_training(
    service: Service, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    placement, _ = place(service, folder)
    folder.rename(tmp_path / "away")

    ending.finish(service.database, placement, failure_reports.exited(EXIT_FAILED))

    assert_lost_by_its_disk(service, placement, "No such file or directory")


def test_a_run_whose_directory_is_read_only_is_lost_and_not_a_fault_of_the_training(
    service: Service, tmp_path: Path
) -> None:
    placement, run_dir = place(service, tmp_path)
    run_dir.launcher_log.write_text("the launcher's last word\n")
    with read_only(tmp_path) as is_read_only:
        if not is_read_only:
            pytest.skip("this machine lets the tests mount nothing")
        ending.finish(service.database, placement, failure_reports.exited(EXIT_FAILED))

    assert_lost_by_its_disk(service, placement, "Read-only file system")
    failure = service.job(placement.job_id).failure
    assert failure is not None
    assert failure["log_tail"] == "the launcher's last word"


def assert_lost_by_its_disk(service: Service, placement: Placement, why: str) -> None:
    job, (attempt,) = service.job(placement.job_id), service.attempts(placement.job_id)
    assert (job.state, job.retries, attempt.outcome) == ("queued", 1, Outcome.LOST)
    assert job.failure is not None
    assert job.failure["cause"] == "lost"
    assert job.failure["message"] == f"its run directory cannot be written any more: {why}"


def test_an_exit_status_alone_is_a_fault_of_the_training_where_the_run_could_have_said_more(
    service: Service, tmp_path: Path
) -> None:
    placement, _ = place(service, tmp_path)

    ending.finish(service.database, placement, failure_reports.exited(EXIT_FAILED))

    assert service.state(placement.job_id) == "failed"


def test_what_a_rank_raised_is_not_laid_to_a_disk_that_is_read_only_afterwards(
    service: Service, tmp_path: Path
) -> None:
    placement, run_dir = place(service, tmp_path)
    error = OSError(errno.EROFS, "Read-only file system", "/data/labels.cache")
    raised = ErrorReport.of(error, cause=os_error_cause(error), rank=0, traceback=None)
    run_dir.error.write_text(raised.model_dump_json())
    with read_only(tmp_path):
        assert finish(service, placement) == "failed"


@pytest.mark.parametrize(("intent", "state"), [(Intent.CANCEL, "cancelled"), (Intent.PAUSE, "paused")])
def test_a_run_that_was_stopped_on_request_ends_as_its_user_wants(
    service: Service, tmp_path: Path, intent: Intent, state: str
) -> None:
    placement, _ = place(service, tmp_path)
    with service.database.session_scope() as session:
        jobs.set_intent(session, placement.job_id, intent)

    assert finish(service, placement) == state


def test_a_run_that_completed_before_its_cancel_arrived_succeeded(service: Service, tmp_path: Path) -> None:
    placement, run_dir = place(service, tmp_path)
    write_run(run_dir)
    with service.database.session_scope() as session:
        jobs.set_intent(session, placement.job_id, Intent.CANCEL)

    assert finish(service, placement) == "succeeded"


def test_an_attempt_that_others_have_ended_is_not_ended_again(service: Service, tmp_path: Path) -> None:
    placement, run_dir = place(service, tmp_path)
    write_run(run_dir)
    service.end(placement, Outcome.LOST)
    before = service.everything()

    with pytest.raises(StaleAttemptError):
        finish(service, placement)

    assert service.everything() == before


def no_folder(folder: Path) -> None:
    folder.rmdir()
    folder.write_text("a file where the folder was")


def a_folder_for_a_journal(folder: Path) -> None:
    RunDir(folder).journal.mkdir()


def a_folder_for_a_log(folder: Path) -> None:
    RunDir(folder).log(1).mkdir(parents=True)


def a_folder_for_the_error(folder: Path) -> None:
    RunDir(folder).error.mkdir()


def a_loop(folder: Path) -> None:
    RunDir(folder).journal.symlink_to(RunDir(folder).journal)


@pytest.mark.parametrize(
    "break_it", [no_folder, a_folder_for_a_journal, a_folder_for_a_log, a_folder_for_the_error, a_loop]
)
def test_a_run_directory_that_cannot_be_read_does_not_keep_the_devices(
    service: Service, tmp_path: Path, break_it: Callable[[Path], None]
) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    placement, _ = place(service, folder)
    break_it(folder)

    assert finish(service, placement) == "queued"

    failure = service.job(placement.job_id).failure
    assert failure is not None
    assert failure["cause"] == "lost"
    assert "its run directory cannot be read: " in failure["message"]
