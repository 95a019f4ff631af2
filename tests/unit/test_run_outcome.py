"""How a run's end is told on each of its nodes, from exit statuses and error files."""

import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from trainer.config import TrainConfig
from trainer.error_report import ErrorReport
from trainer.errors import Cause
from trainer.outcome import Outcome, RankEnd, conclude
from trainer.run_dir import EXIT_DISK_FULL, EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE, RunConfig, RunDir

BEGUN = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def run_dir(tmp_path: Path) -> RunDir:
    made = RunDir(tmp_path / "run")
    made.create(config())
    return made


def config(*, nnodes: int = 1, node_rank: int = 0) -> RunConfig:
    train = TrainConfig(model="resnet18", data="digits")
    return RunConfig(train=train, devices=("cpu", "cpu"), nnodes=nnodes, node_rank=node_rank, master_port=29400)


def ended(*statuses: int) -> dict[int, RankEnd]:
    """The ranks of a node, ended one second apart in the order of their numbers."""
    return {
        local_rank: RankEnd(status, BEGUN + timedelta(seconds=local_rank)) for local_rank, status in enumerate(statuses)
    }


def write_error(run_dir: RunDir, local_rank: int, cause: Cause, *, exception: str = "builtins.RuntimeError") -> None:
    report = ErrorReport(cause=cause, message="Connection closed", time=BEGUN, rank=local_rank, exception=exception)
    report.write(run_dir.rank_error(local_rank))


def error_of(outcome: Outcome) -> ErrorReport:
    assert outcome.error is not None
    return outcome.error


@pytest.mark.parametrize("statuses", [(0, 0), (0, -signal.SIGABRT)], ids=["both end well", "one aborts in teardown"])
def test_another_node_has_done_its_part_once_a_rank_has_passed_the_last_barrier(
    statuses: tuple[int, int], run_dir: RunDir
) -> None:
    outcome = conclude(run_dir, config(nnodes=2, node_rank=1), ended(*statuses), stopped_by=None)
    assert outcome.has_done_its_part
    assert outcome.completed is None
    assert outcome.exit_status == 0
    assert run_dir.read_error() is None


def test_on_node_0_only_the_completion_record_is_success(run_dir: RunDir) -> None:
    outcome = conclude(run_dir, config(nnodes=2), ended(0, 0), stopped_by=None)
    assert not outcome.is_success
    assert outcome.exit_status == EXIT_FAILED


def test_a_rank_of_another_node_is_named_by_its_number_among_all(run_dir: RunDir) -> None:
    write_error(run_dir, 0, Cause.COMMUNICATION)
    outcome = conclude(run_dir, config(nnodes=2, node_rank=1), ended(1, -signal.SIGKILL), stopped_by=None)
    error = error_of(outcome)
    assert (error.rank, error.cause, error.signal) == (3, Cause.KILLED_BY_SIGNAL, "SIGKILL")
    assert error.message.startswith("rank 3 was ended by SIGKILL")


def test_a_node_whose_ranks_merely_lost_the_others_blames_none_of_them(run_dir: RunDir) -> None:
    for local_rank in (0, 1):
        write_error(run_dir, local_rank, Cause.COMMUNICATION)
    error = error_of(conclude(run_dir, config(nnodes=2, node_rank=1), ended(1, 1), stopped_by=None))
    assert (error.rank, error.cause) == (None, Cause.COMMUNICATION)
    assert error.message.startswith("node 1 lost its peers")
    assert "Connection closed" in error.message


def test_a_node_that_never_found_its_peers_keeps_what_was_said_of_it(run_dir: RunDir) -> None:
    write_error(run_dir, 0, Cause.COMMUNICATION, exception="trainer.roll_call.PeersMissingError")
    error = error_of(conclude(run_dir, config(nnodes=2), ended(1), stopped_by=None))
    assert (error.rank, error.message) == (0, "Connection closed")


def test_another_node_that_is_stopped_does_not_look_for_checkpoints_of_its_own(run_dir: RunDir) -> None:
    stopped = ended(EXIT_INTERRUPTED, EXIT_INTERRUPTED)
    outcome = conclude(run_dir, config(nnodes=2, node_rank=1), stopped, stopped_by=signal.SIGINT)
    assert outcome.exit_status == EXIT_INTERRUPTED
    assert error_of(outcome).message == "stopped by SIGINT; the checkpoints are node 0's"


@pytest.mark.parametrize(
    ("cause", "status"),
    [
        (Cause.CONFIG, EXIT_USAGE),
        (Cause.DATA, EXIT_FAILED),
        (Cause.CHECKPOINT, EXIT_FAILED),
        (Cause.EXCEPTION, EXIT_FAILED),
        (Cause.DISK_FULL, EXIT_DISK_FULL),
        (Cause.INTERRUPTED, EXIT_INTERRUPTED),
    ],
)
def test_the_exit_status_says_what_kind_of_end_it_was(cause: Cause, status: int) -> None:
    assert Outcome(error=ErrorReport(cause=cause, message="why", time=BEGUN)).exit_status == status
