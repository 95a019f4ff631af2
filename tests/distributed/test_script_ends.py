"""Ends of a program that could pass for others: a forked child's, an exception that cannot be told, an odd exit."""

import os
from pathlib import Path

import pytest

from tests.distributed.runs import Run, records
from tests.distributed.runs import prepare as prepare_training
from tests.distributed.test_script import prepare
from trainer.error_report import ErrorReport
from trainer.journal import Completed

FORKS = """
import os, sys
child = os.fork()
if child == 0:
    {child}
else:
    os.waitpid(child, 0)
    if os.environ["RANK"] == "{failing}":
        raise LookupError("the parent")
"""


def failure(folder: Path, program: str, *, ranks: int = 1) -> ErrorReport:
    """Run a program that fails, and return how its failure is told."""
    run_dir = prepare(folder, program, ranks=ranks)
    run = Run(run_dir)
    assert run.wait() == 1, run.output()
    assert not [record for record in records(run_dir) if isinstance(record, Completed)]
    error = run_dir.read_error()
    assert error is not None
    return error


@pytest.mark.parametrize(
    ("child", "ranks"),
    [("sys.exit(0)", 1), ("pass", 2), ("raise ValueError('the child')", 1)],
    ids=["child exits", "child comes to its end", "child raises"],
)
def test_how_a_forked_child_ends_is_not_how_its_rank_ends(child: str, ranks: int, tmp_path: Path) -> None:
    error = failure(tmp_path, FORKS.format(child=child, failing=ranks - 1), ranks=ranks)
    assert (error.rank, error.message) == (ranks - 1, "LookupError: the parent")


def test_a_program_whose_forked_child_fails_succeeds_as_it_would_without_us(tmp_path: Path) -> None:
    run_dir = prepare(tmp_path, FORKS.format(child="raise ValueError('the child')", failing="none"), ranks=1)
    Run(run_dir).succeed()
    assert not run_dir.rank_error(0).exists()
    assert "ValueError: the child" in run_dir.log(0).read_text()


NO_TEXT = """
import sys
class Mute(Exception):
    def __str__(self): return 5
    __hash__ = None
    def __eq__(self, other): raise RuntimeError("not to be compared")
"""


@pytest.mark.parametrize(
    ("end", "message"),
    [
        (r"raise ValueError('bad \udcff')", r"ValueError: bad \udcff"),
        (r"sys.exit('bad \udcff')", r"the program ended with exit status 1: bad \udcff"),
        ("raise Mute", "Mute: <no text: TypeError in its __str__>"),
        ("import torch\nraise Mute from Mute()", "Mute: <no text: TypeError in its __str__>"),
        ("sys.exit(Mute())", "the program ended with exit status 1: <no text: TypeError in its __str__>"),
        ("sys.exit(0.0)", "the program ended with exit status 1: 0.0"),
        ("sys.exit(256)", "the program ended with exit status 1, asked for by sys.exit(256): see "),
    ],
)
def test_a_program_that_ends_in_a_way_that_is_hard_to_tell_fails_all_the_same(
    end: str, message: str, tmp_path: Path
) -> None:
    error = failure(tmp_path, NO_TEXT + end)
    assert (error.rank, error.message[: len(message)]) == (0, message)


@pytest.mark.parametrize(
    "end", ["raise KeyboardInterrupt", "import _thread\n_thread.interrupt_main()\nfor _ in range(9**9): pass"]
)
def test_an_interrupt_that_the_launcher_did_not_ask_for_is_the_programs_failure(end: str, tmp_path: Path) -> None:
    error = failure(tmp_path, end)
    assert (error.cause, error.exception) == ("exception", "builtins.KeyboardInterrupt")
    assert error.traceback is not None
    assert f'File "{tmp_path / "program.py"}", line ' in error.traceback


MASKED = """
import os, sys
class Interrupted:
    def find_spec(self, name, *_):
        if name == {module!r}:
            try:
                os.kill(os.getpid(), 2)
            except KeyboardInterrupt:
                raise ImportError("what compiled modules make of an interrupt in their own imports") from None
if "LOCAL_RANK" in os.environ:
    sys.meta_path.insert(0, Interrupted())
"""


@pytest.mark.parametrize("module", ["trainer.environment", "trainer.script.program", "trainer.process_group"])
def test_a_rank_that_is_interrupted_while_it_imports_was_ended_by_the_signal_and_by_nothing_of_the_programs(
    module: str, tmp_path: Path, images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "first").mkdir()
    (tmp_path / "first" / "sitecustomize.py").write_text(MASKED.format(module=module))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "first"), prepend=os.pathsep)
    if module == "trainer.process_group":
        run_dir = prepare_training(tmp_path / "run", data=images, ranks=1)
    else:
        run_dir = prepare(tmp_path, "pass", ranks=1)

    run = Run(run_dir)

    assert run.wait() == 1, run.output()
    error = run_dir.read_error()
    assert error is not None
    assert (error.cause, error.signal) == ("killed_by_signal", "SIGINT")
