"""What the user's own code reports, and that it goes nowhere outside a run and on other ranks."""

import os
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import rankzero
from rankzero import reporting, wandb
from trainer import run_dir as run_dirs
from trainer.journal import Completed, JournalWriter, Metrics, read_records
from trainer.reporting import ProgressFile
from trainer.run_dir import RunConfig, RunDir


def make_run(folder: Path, **train: Any) -> RunDir:
    run_dir = RunDir(folder / "run")
    run_dir.create(RunConfig.model_validate({"train": train, "devices": ["cpu"]}))
    return run_dir


@pytest.fixture
def run_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDir:
    """The run directory of a script, whose rank 0 this process is."""
    made = make_run(tmp_path, recipe="script", options={"module": "anything"})
    monkeypatch.setenv("RANKZERO_RUN_DIR", str(made.path))
    monkeypatch.setenv("RANK", "0")
    return made


def test_outside_a_run_a_report_does_nothing_and_imports_nothing() -> None:
    code = (
        "import sys, rankzero\n"
        "rankzero.report(step=1, loss='no number')\n"
        "rankzero.checkpoint('missing.pt', step=1)\n"
        "print(rankzero.resume_path(), *sorted({'torch', 'pydantic', 'trainer', 'httpx2'} & set(sys.modules)))"
    )
    environment = {name: value for name, value in os.environ.items() if name != "RANKZERO_RUN_DIR"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "None"


def test_the_variables_are_those_that_the_launcher_sets() -> None:
    ours = (reporting._RUN_DIR_VARIABLE, reporting._RESUME_VARIABLE)
    assert ours == (run_dirs.RUN_DIR_VARIABLE, run_dirs.RESUME_VARIABLE)


def test_other_ranks_report_nothing(run_dir: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    rankzero.report(step=1, loss=0.5)
    rankzero.checkpoint("missing.pt", step=1)
    assert not run_dir.journal.exists()


def test_other_ranks_of_a_group_that_the_program_made_itself_report_nothing(
    run_dir: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    for rank in (0, 1):
        monkeypatch.setattr(torch.distributed, "get_rank", lambda rank=rank: rank)
        rankzero.report(step=rank, loss=0.5)
    assert [record.step for record in read_records(run_dir.journal) if isinstance(record, Metrics)] == [0]


def test_numbers_of_every_kind_become_metrics(run_dir: RunDir) -> None:
    values = {
        "int": 3,
        "точность 📈 👩\u200d💻": 0.5,
        "tensor": torch.tensor(0.25, requires_grad=True),
        "bfloat16": torch.tensor([2.0], dtype=torch.bfloat16),
        "numpy": np.float32(1.5),
        "array": np.array([7]),
        "fraction": Fraction(1, 4),
        "nan": float("nan"),
        "inf": torch.tensor(float("-inf")),
        "x" * 255: 1,
    }
    rankzero.report(step=np.int64(5), epoch=2, **values)
    (record,) = read_records(run_dir.journal)
    assert isinstance(record, Metrics)
    assert (record.step, record.epoch) == (5, 2)
    assert list(record.values.values()) == [3, 0.5, 0.25, 2.0, 1.5, 7, 0.25, None, None, 1]
    assert record.nonfinite == {"nan": "nan", "inf": "-inf"}
    progress = run_dir.read_progress(0)
    assert progress is not None
    assert (progress.phase, progress.step) == ("training", 5)


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ({"loss": "0.5"}, TypeError, "metric 'loss': '0.5' (str) is not a number"),
        ({"loss": True}, TypeError, "metric 'loss': True (bool) is not a number"),
        ({"loss": None}, TypeError, "metric 'loss': None (NoneType) is not a number"),
        ({"loss": 1j}, TypeError, "metric 'loss': 1j (complex) is not a number"),
        ({"loss": Decimal(1)}, TypeError, "metric 'loss': Decimal('1') (Decimal) is not a number"),
        ({"loss": torch.ones(2)}, TypeError, "metric 'loss': tensor([1., 1.]) (Tensor) is not a single number"),
        ({"loss": 10**400}, ValueError, "metric 'loss': the number is too large for a float"),
        ({"": 1}, ValueError, "metric '': a name is 1 to 255 characters"),
        ({"x" * 256: 1}, ValueError, "a name is 1 to 255 characters"),
        ({"loss\n\u2028": 1}, ValueError, r"metric 'loss\n\u2028': a name is 1 to 255 characters of one line"),
        ({"\udcff": 1}, ValueError, r"metric '\udcff': a name is 1 to 255 characters of one line"),
    ],
)
def test_what_is_no_number_or_no_name_is_refused_by_name(
    values: dict[str, Any], error: type[Exception], message: str, run_dir: RunDir
) -> None:
    with pytest.raises(error) as raised:
        rankzero.report(step=1, **values)
    assert message in str(raised.value)
    assert list(read_records(run_dir.journal)) == []


@pytest.mark.parametrize(
    ("step", "error", "message"),
    [
        (-1, ValueError, "step: -1 is not from 0"),
        (1.5, TypeError, "step: 1.5 (float) is not a whole number"),
        (True, TypeError, "step: True is a truth value"),
        ("3", TypeError, "step: '3' (str) is not a whole number"),
    ],
)
def test_a_step_is_a_whole_number(step: Any, error: type[Exception], message: str, run_dir: RunDir) -> None:
    with pytest.raises(error) as raised:
        rankzero.report(step=step, loss=1)
    assert message in str(raised.value)
    assert list(read_records(run_dir.journal)) == []


def test_the_stand_in_for_wandb_leaves_out_what_no_metric_can_be_called(run_dir: RunDir) -> None:
    with wandb.init(), pytest.warns(UserWarning, match="left out"):
        wandb.log({"": 1, "x" * 256: 1, "a\x00b": 1, "loss": 0.5})
    assert [record.values for record in read_records(run_dir.journal) if isinstance(record, Metrics)] == [{"loss": 0.5}]


def test_a_checkpoint_is_told_of_once_it_is_a_file(run_dir: RunDir, tmp_path: Path) -> None:
    for path, error in ((tmp_path / "missing.pt", FileNotFoundError), (tmp_path, IsADirectoryError)):
        with pytest.raises(error) as raised:
            rankzero.checkpoint(path, step=1)
        assert str(path) in str(raised.value)
    assert list(read_records(run_dir.journal)) == []


def test_a_checkpoint_whose_path_the_journal_cannot_hold_is_refused(run_dir: RunDir, tmp_path: Path) -> None:
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.pt")
    Path(path).touch()
    with pytest.raises(ValueError, match=r"^checkpoint: '.*\\udcff\.pt' is no UTF-8"):
        rankzero.checkpoint(path, step=1)
    assert list(read_records(run_dir.journal)) == []


def test_inside_a_training_of_ours_metrics_are_taken_and_checkpoints_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_dir = make_run(tmp_path, model="resnet18", data="digits")
    monkeypatch.setenv("RANKZERO_RUN_DIR", str(run_dir.path))
    rankzero.report(step=1, mine=1)
    with pytest.raises(RuntimeError, match="saves its checkpoints itself"):
        rankzero.checkpoint(__file__, step=1)
    assert len(list(read_records(run_dir.journal))) == 1
    assert run_dir.read_progress(0) is None


def test_what_comes_after_the_completion_record_is_left_out(run_dir: RunDir) -> None:
    rankzero.report(step=1, loss=1)
    JournalWriter(run_dir.journal).append(Completed, step=1, epoch=1, values={}, best_checkpoint=None)
    rankzero.report(step=2, loss=1)
    assert run_dir.completed() is not None


def test_a_process_that_has_not_reported_before_comes_too_late_as_well(run_dir: RunDir) -> None:
    JournalWriter(run_dir.journal).append(Completed, step=1, epoch=1, values={}, best_checkpoint=None)
    ProgressFile(run_dir, local_rank=0).write("finished", 1)
    for step in (2, 3):
        rankzero.report(step=step, loss=1)
        rankzero.checkpoint(__file__, step=step)
    progress = run_dir.read_progress(0)
    assert run_dir.completed() is not None
    assert progress is not None
    assert (progress.phase, progress.step) == ("finished", 1)


SEVERAL_WRITERS = """
import multiprocessing, threading
import rankzero

def report(name):
    for step in range(100):
        rankzero.report(step=step, **{name: step})

def in_threads():
    threads = [threading.Thread(target=report, args=(f"thread {number}",)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

if __name__ == "__main__":
    rankzero.report(step=0, begun=1)  # so that the forked process has a writer that its parent has, too
    processes = [multiprocessing.get_context(method).Process(target=in_threads) for method in ("fork", "spawn")]
    for process in processes:
        process.start()
    in_threads()
    for process in processes:
        process.join()
"""


def test_threads_and_processes_report_at_once_and_each_record_is_whole(run_dir: RunDir, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(SEVERAL_WRITERS)
    subprocess.run([sys.executable, str(program)], check=True)
    records = list(read_records(run_dir.journal))
    assert [record.seq for record in records] == list(range(1 + 3 * 3 * 100))


TWO_FIRST_REPORTS = """
import threading
from rankzero import reporting

tried, found = threading.Event(), []
taken, importing = reporting._taken, reporting._importing

class Told:
    def __enter__(self):
        if not importing.acquire(blocking=False):
            tried.set()
            importing.acquire()

    def __exit__(self, *error):
        importing.release()

def find():
    found.append(reporting._trainer_reports())
    tried.set()

second = threading.Thread(target=find)

def taken_late():
    modules = taken()
    if "trainer" in modules and second.ident is None:  # the first thread has imported, and nobody knows it yet
        second.start()
        assert tried.wait(20)
    return modules

reporting._taken, reporting._importing = taken_late, Told()
find()
second.join()
print(second.ident is not None, len(found), len(set(found)))
"""


def test_threads_whose_first_reports_meet_import_the_same_modules() -> None:
    done = subprocess.run([sys.executable, "-c", TWO_FIRST_REPORTS], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "2", "1"]


def test_a_line_that_a_killed_writer_left_torn_is_cut_off_by_the_next(run_dir: RunDir) -> None:
    rankzero.report(step=1, loss=1)
    with run_dir.journal.open("ab") as journal:
        journal.write(run_dir.journal.read_bytes() + b'{"seq":2,"ti')
    rankzero.report(step=2, loss=1)
    assert [record.seq for record in read_records(run_dir.journal)] == [0, 0, 2]
