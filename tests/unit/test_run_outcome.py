"""How a run's end is told on each of its nodes, from exit statuses and error files."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from trainer.config import TrainConfig
from trainer.environment import RankEnvironment
from trainer.error_report import ErrorReport
from trainer.errors import Cause
from trainer.journal import Completed, JournalWriter, Started
from trainer.launch import RunDirBusyError, launch
from trainer.oom_kills import OomKill
from trainer.outcome import Outcome, RankEnd, conclude
from trainer.rank import report
from trainer.rank_process import RankProcess, StartMethod
from trainer.reporting import Phase, ProgressFile
from trainer.run_dir import EXIT_DISK_FULL, EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE, RunConfig, RunDir

BEGUN = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def run_dir(tmp_path: Path) -> RunDir:
    made = RunDir(tmp_path / "run")
    made.create(config())
    return made


def config(*, nnodes: int = 1, node_rank: int = 0) -> RunConfig:
    train = TrainConfig(model="resnet18", data="digits")
    port = 29400 if nnodes > 1 else 0  # what is launched here is of one node, and takes a free one
    return RunConfig(train=train, devices=("cpu", "cpu"), nnodes=nnodes, node_rank=node_rank, master_port=port)


def ended(*statuses: int) -> dict[int, RankEnd]:
    """The ranks of a node, ended one second apart in the order of their numbers; those that were stopped said so."""
    return {
        local_rank: RankEnd(
            status,
            BEGUN + timedelta(seconds=local_rank),
            phase="stopped" if status == EXIT_INTERRUPTED else "training",
        )
        for local_rank, status in enumerate(statuses)
    }


def write_phases(run_dir: RunDir, *phases: Phase) -> None:
    for local_rank, phase in enumerate(phases):
        ProgressFile(run_dir, local_rank=local_rank).write(phase, 3)


def write_error(run_dir: RunDir, local_rank: int, cause: Cause, *, exception: str = "builtins.RuntimeError") -> None:
    report = ErrorReport(cause=cause, message="Connection closed", time=BEGUN, rank=local_rank, exception=exception)
    report.write(run_dir.rank_error(local_rank))


def error_of(outcome: Outcome) -> ErrorReport:
    assert outcome.error is not None
    return outcome.error


@pytest.mark.parametrize("statuses", [(0, 0), (0, -signal.SIGABRT)], ids=["both end well", "one aborts in teardown"])
def test_another_node_has_done_its_part_once_its_ranks_have_passed_the_last_barrier(
    statuses: tuple[int, int], run_dir: RunDir
) -> None:
    write_phases(run_dir, "finished", "finished")
    outcome = conclude(run_dir, config(nnodes=2, node_rank=1), ended(*statuses), stopped_by=None)
    assert outcome.has_done_its_part
    assert outcome.completed is None
    assert outcome.exit_status == 0
    assert run_dir.read_error() is None


def test_a_rank_of_another_node_that_exits_with_0_in_training_is_named_before_those_that_lost_it(
    run_dir: RunDir,
) -> None:
    write_phases(run_dir, "training", "training")
    write_error(run_dir, 1, Cause.COMMUNICATION)
    error = error_of(conclude(run_dir, config(nnodes=2, node_rank=1), ended(0, EXIT_FAILED), stopped_by=None))
    assert (error.rank, error.cause, error.exit_code) == (2, Cause.EXCEPTION, 0)
    assert error.message.startswith("rank 2 ended (exit status 0) before the run was complete")


def test_an_exit_status_of_a_stop_that_nobody_asked_for_is_a_failure_and_one_that_was_agreed_on_is_none(
    run_dir: RunDir,
) -> None:
    write_error(run_dir, 1, Cause.COMMUNICATION)
    alone = {0: RankEnd(EXIT_INTERRUPTED, BEGUN, phase="training"), 1: RankEnd(EXIT_FAILED, BEGUN, phase="training")}
    assert error_of(conclude(run_dir, config(), alone, stopped_by=None)).rank == 0
    # Another node's launcher was told to stop; one rank came too late to read of it.
    outcome = conclude(run_dir, config(nnodes=2), ended(EXIT_INTERRUPTED, EXIT_FAILED), stopped_by=None)
    assert error_of(outcome).cause is Cause.INTERRUPTED


def test_what_an_earlier_launch_said_of_its_end_is_no_proof_for_the_next_one(run_dir: RunDir) -> None:
    """Nor does a rank that ends early with status 0 keep the others waiting."""
    write_phases(run_dir, "finished", "finished")
    outcome = launch(run_dir, start=_commands("exit 0", "exec sleep 60"))
    error = error_of(outcome)
    assert (error.rank, error.exit_code) == (0, 0)


def test_a_keyboard_interrupt_of_the_users_own_code_is_a_failure_and_one_before_training_a_stop(
    run_dir: RunDir,
) -> None:
    environment = RankEnvironment(rank=0, local_rank=0, world_size=2, local_world_size=2)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert report(KeyboardInterrupt(), run_dir, environment) == EXIT_INTERRUPTED
        stopped = run_dir.read_progress(0)
        signal.signal(signal.SIGINT, lambda *_: None)  # as a rank that trains hears it
        assert report(KeyboardInterrupt(), run_dir, environment) == EXIT_FAILED
    finally:
        signal.signal(signal.SIGINT, before)
    assert stopped is not None
    assert stopped.phase == "stopped"
    told = run_dir.read_rank_error(0)
    assert told is not None
    assert (told.cause, told.exception) == (Cause.EXCEPTION, "builtins.KeyboardInterrupt")


def test_on_node_0_only_the_completion_record_is_success(run_dir: RunDir) -> None:
    write_phases(run_dir, "finished", "finished")
    finished = {local_rank: RankEnd(0, BEGUN, phase="finished") for local_rank in (0, 1)}
    outcome = conclude(run_dir, config(nnodes=2), finished, stopped_by=None)
    assert not outcome.is_success
    assert outcome.exit_status == EXIT_FAILED
    assert "no completion record" in error_of(outcome).message


def test_ranks_whose_teardown_never_ends_are_killed_soon_after_the_run_is_complete(
    run_dir: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainer.launch._TEARDOWN_S", 0.5)

    def watch() -> None:
        if run_dir.completed() is None:
            JournalWriter(run_dir.journal).append(Completed, step=3, epoch=1, values={}, best_checkpoint=None)
            write_phases(run_dir, "finished", "finished")

    began = time.monotonic()
    outcome = launch(run_dir, start=_commands("exec sleep 60", "exec sleep 60"), watch=watch)
    assert outcome.is_success
    assert time.monotonic() - began < 30


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


def test_a_run_directory_has_one_launcher_though_its_configuration_is_written_anew(run_dir: RunDir) -> None:
    refused: list[str] = []

    def watch() -> None:
        run_dir.create(config())
        with pytest.raises(RunDirBusyError) as busy:
            launch(run_dir)
        refused.append(str(busy.value))

    launch(run_dir, start=_commands("exit 0", "exit 0"), watch=watch)
    assert refused
    assert all("a run is already going on" in message for message in refused)


@pytest.mark.parametrize("is_stopped", [False, True], ids=["left alone", "asked to stop"])
def test_ranks_that_run_out_of_memory_start_anew_unless_they_were_to_stop(run_dir: RunDir, is_stopped: bool) -> None:
    started = Started(seq=0, time=BEGUN, world_size=2, devices=("cuda:0", "cuda:1"), batch=64)
    (run_dir.path / "started").write_text(started.model_dump_json() + "\n")
    write_error(run_dir, 1, Cause.OUT_OF_MEMORY, exception="torch.OutOfMemoryError")
    run_dir.rank_error(1).rename(run_dir.path / "out-of-memory")
    tells = "cat started >> journal.jsonl && cp out-of-memory new && mv new ranks/1.error.json"
    runs_out = f"cd {run_dir.path} && {tells}; exit 1"

    def watch() -> None:
        if is_stopped and run_dir.rank_error(1).exists():
            os.kill(os.getpid(), signal.SIGTERM)

    # The second time they tell of no start of their own, as ranks that lack the memory for a model do.
    outcome = launch(run_dir, start=_commands("exec sleep 60", runs_out), watch=watch)
    assert error_of(outcome).cause is Cause.OUT_OF_MEMORY
    assert run_dir.read_error() == outcome.error
    assert run_dir.read_config().micro_batches == (1 if is_stopped else 2)


def test_batchnorm_s_error_on_parts_of_a_batch_is_a_lack_of_memory(run_dir: RunDir) -> None:
    run_dir.create(config().model_copy(update={"micro_batches": 2}))
    message = "batch: too small for BatchNorm (ValueError: Expected more than 1 value per channel when training, …)"
    ErrorReport(cause=Cause.CONFIG, message=message, time=BEGUN, rank=1).write(run_dir.path / "refused")
    refuses = f"cp {run_dir.path / 'refused'} {run_dir.rank_error(1)}; exit 1"
    outcome = launch(run_dir, start=_commands("exit 1", refuses))
    assert error_of(outcome).cause is Cause.OUT_OF_MEMORY
    assert run_dir.read_error() == outcome.error


def test_a_failure_has_the_last_lines_of_the_log_of_the_rank_at_fault(run_dir: RunDir) -> None:
    outcome = launch(run_dir, start=_commands("echo of rank 0; exec sleep 60", "echo of rank 1; kill -9 $$"))
    assert error_of(outcome).rank == 1
    assert error_of(outcome).log_tail == "of rank 1"
    assert run_dir.read_error() == outcome.error


def test_a_failure_of_no_rank_has_the_last_lines_of_the_launcher_s_log(run_dir: RunDir) -> None:
    run_dir.launcher_log.write_text("cuda:0 is GPU-1\n")
    outcome = conclude(run_dir, config(), ended(EXIT_INTERRUPTED), stopped_by=signal.SIGTERM)
    assert error_of(outcome).log_tail == "cuda:0 is GPU-1"


OOM_KILLS = [
    (None, Cause.KILLED_BY_SIGNAL, ""),
    (OomKill.ANYBODY, Cause.KILLED_BY_SIGNAL, "the kernel's OOM killer was at work"),
    (OomKill.OWN, Cause.OUT_OF_MEMORY, "the run was out of the memory that it may have"),
]


@pytest.mark.parametrize(("kill", "cause", "said"), OOM_KILLS)
def test_a_rank_that_the_kernel_kills_ran_out_of_memory_where_it_was_at_its_own_limit(
    kill: OomKill | None, cause: Cause, said: str, run_dir: RunDir
) -> None:
    ends = {1: RankEnd(-signal.SIGKILL, BEGUN, oom_kill=kill, phase="training")}
    error = error_of(conclude(run_dir, config(), ends, stopped_by=None))
    assert (error.rank, error.signal, error.cause) == (1, "SIGKILL", cause)
    assert error.oom_kill is (kill is not None)
    assert said in error.message


@pytest.mark.parametrize(("kill", "cause", "said"), OOM_KILLS)
def test_so_did_one_whose_loader_process_the_kernel_kills(
    kill: OomKill | None, cause: Cause, said: str, run_dir: RunDir
) -> None:
    write_error(run_dir, 1, Cause.KILLED_BY_SIGNAL)
    ends = {1: RankEnd(EXIT_FAILED, BEGUN, oom_kill=kill, phase="training")}
    error = error_of(conclude(run_dir, config(), ends, stopped_by=None))
    assert error.cause is cause
    assert error.oom_kill is (kill is not None)
    assert said in error.message


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ("", Cause.KILLED_BY_SIGNAL),
        ("[rank1]:[E] ProcessGroupNCCL.cpp:632 Watchdog caught collective operation timeout", Cause.COMMUNICATION),
        ("what():  CUDA error: uncorrectable ECC error encountered", Cause.DEVICE),
        ("what():  CUDA error: device-side assert triggered", Cause.EXCEPTION),
    ],
)
def test_what_made_a_rank_abort_is_read_from_its_log(said: str, cause: Cause, run_dir: RunDir) -> None:
    run_dir.log(1).write_text(f"terminate called\n{said}\n")
    ends = {1: RankEnd(-signal.SIGABRT, BEGUN, phase="training")}
    assert error_of(conclude(run_dir, config(), ends, stopped_by=None)).cause is cause


@pytest.mark.parametrize(("job_id", "cause"), [(None, Cause.CONFIG), (7, Cause.DEVICE)])
def test_a_device_that_is_gone_is_the_host_s_fault_once_the_service_has_handed_it_out(
    job_id: int | None, cause: Cause, run_dir: RunDir
) -> None:
    write_error(run_dir, 0, Cause.CONFIG, exception="trainer.errors.ConfigError")
    late = ErrorReport(
        cause=Cause.CONFIG,
        message="device: 'cuda:1' is not on this host",
        time=BEGUN + timedelta(seconds=1),
        rank=1,
        exception="trainer.errors.MissingDeviceError",
    )
    late.write(run_dir.rank_error(1))
    of_a_job = config().model_copy(update={"job_id": job_id})
    error = error_of(conclude(run_dir, of_a_job, ended(EXIT_FAILED, EXIT_FAILED), stopped_by=None))
    assert (error.rank, error.cause) == (1, cause)


def _commands(*shell: str) -> StartMethod:
    """Start a shell's command in place of each local rank."""

    def start(*, environment: Mapping[str, str], log: Path, inherited: Sequence[int]) -> RankProcess:
        command = ["/bin/sh", "-c", shell[int(environment["LOCAL_RANK"])]]
        with log.open("ab") as output:
            return _Command(subprocess.Popen(command, stdout=output, pass_fds=inherited))

    return start


class _Command:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    def poll(self) -> int | None:
        return self._process.poll()

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def test_a_process_that_a_rank_forks_ends_alone_and_stops_none_of_the_loaders_that_it_inherits() -> None:
    program = (
        "import os\n"
        "from trainer.rank import end_with\n"
        "class Loader:\n"
        "    def __del__(self): print('stopped', self.pid == os.getpid())\n"
        "def body():\n"
        "    loader = Loader()\n"
        "    loader.pid = os.getpid()\n"
        "    if child := os.fork():\n"
        "        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        "    else:\n"
        "        raise SystemExit(3)\n"
        "end_with(body, lambda error: print('told'))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "3\nstopped True\n"
