"""What a script is started with, and which options it takes."""

import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from jobs.catalogs import Catalog, DataSet, Recipe, check
from jobs.spec import JobSpec
from trainer.config import TrainConfig
from trainer.durable_files import sha256_of
from trainer.environment import RankEnvironment
from trainer.error_report import ErrorReport
from trainer.errors import Cause, ConfigError, DeviceError
from trainer.journal import CheckpointSaved, JournalWriter
from trainer.launch import launch
from trainer.outcome import RankEnd, conclude
from trainer.parity_command import run_parity
from trainer.run_dir import RunConfig, RunDir
from trainer.script.options import script_options
from trainer.script.rank import _forget_handlers
from trainer.script.surroundings import surroundings
from trainer.train_file import train_config


def config(*devices: str, simulated: bool = False, resume: Path | None = None, **options: Any) -> RunConfig:
    train = {"recipe": "script", "options": {"script": "/train.py"} | options}
    return RunConfig.model_validate({"train": train, "devices": devices, "simulated": simulated, "resume": resume})


@pytest.mark.parametrize(
    ("devices", "visible", "expected"),
    [
        (("cuda:2", "cuda:3"), None, "2,3"),
        (("cuda:1", "cuda:0"), "GPU-a, GPU-b", "GPU-b,GPU-a"),
        (("cpu", "cpu"), None, ""),
        (("cpu",), "0,1", ""),
    ],
)
def test_local_rank_is_the_index_of_its_device(
    devices: tuple[str, ...], visible: str | None, expected: str, tmp_path: Path
) -> None:
    environ = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    assert surroundings(RunDir(tmp_path), config(*devices), environ)["CUDA_VISIBLE_DEVICES"] == expected


def test_simulated_devices_are_nothing_that_a_program_could_see(tmp_path: Path) -> None:
    found = surroundings(RunDir(tmp_path), config("cuda:10", "cuda:11", simulated=True), {"CUDA_VISIBLE_DEVICES": ""})
    assert found["CUDA_VISIBLE_DEVICES"] == ""


def test_a_device_that_is_not_visible_is_named(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match="'cuda:1' is not among CUDA_VISIBLE_DEVICES='5'"):
        surroundings(RunDir(tmp_path), config("cuda:1"), {"CUDA_VISIBLE_DEVICES": "5"})


def test_a_program_resumes_from_the_newest_intact_checkpoint_of_this_run_or_of_an_earlier_attempt(
    tmp_path: Path,
) -> None:
    run_dir, earlier = RunDir(tmp_path), tmp_path / "earlier.pt"
    earlier.write_text("earlier")

    def resumed(resume: Path | None = None) -> str:
        return surroundings(run_dir, config("cpu", resume=resume), {})["RANKZERO_RESUME_FROM"]

    assert (resumed(), resumed(earlier)) == ("", str(earlier))
    journal = JournalWriter(run_dir.journal)
    for step, name in enumerate(("one.pt", "two.pt", "three.pt"), start=1):
        file = tmp_path / name
        file.write_text(name)
        facts: dict[str, Any] = {"sha256": sha256_of(file), "size_bytes": len(name), "best": False}
        journal.append(CheckpointSaved, step=step, epoch=0, path=str(file), **facts)
    assert resumed(earlier) == str(tmp_path / "three.pt")
    (tmp_path / "three.pt").unlink()
    (tmp_path / "two.pt").write_text("TWO.pt")
    assert resumed(earlier) == str(tmp_path / "one.pt")


@pytest.mark.parametrize("flags", [(), ("-P",)], ids=["", "as PYTHONSAFEPATH has it"])
def test_a_programs_folder_is_searched_before_what_pythonpath_names(flags: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "program.py").touch()
    code = (
        "import sys\n"
        "from trainer.script.options import ScriptOptions\n"
        "from trainer.script.program import enter\n"
        f"enter(ScriptOptions(script={str(tmp_path / 'program.py')!r}), otherwise=None)\n"
        "print(sys.path[:2])"
    )
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "stand_ins")}
    done = subprocess.run(
        [sys.executable, *flags, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str([str(tmp_path), str(tmp_path / "stand_ins")])


def test_nothing_of_a_programs_handlers_runs_while_its_end_is_told() -> None:
    calls: list[int] = []
    former = {number: signal.getsignal(number) for number in (signal.SIGUSR1, signal.SIGTERM, signal.SIGALRM)}
    try:
        for number in former:
            signal.signal(number, lambda number, _frame: calls.append(number))
        _forget_handlers()
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        for number in (signal.SIGUSR1, signal.SIGALRM):
            signal.raise_signal(number)
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
    assert calls == []


def test_whatever_a_program_does_when_it_is_told_to_stop_is_the_interruption(tmp_path: Path) -> None:
    run_dir, run_config = RunDir(tmp_path), config("cpu")
    run_dir.create(run_config)
    ErrorReport.of(LookupError("gave up"), cause=Cause.EXCEPTION, rank=0, traceback="…").write(run_dir.rank_error(0))
    ended = {0: RankEnd(1, seen=datetime.now(UTC), phase="training")}
    for stopped_by, cause in ((None, Cause.EXCEPTION), (signal.SIGTERM, Cause.INTERRUPTED)):
        error = conclude(run_dir, run_config, ended, stopped_by=stopped_by).error
        assert error is not None
        assert error.cause is cause


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "options: name the program by one of `script`, a path, and `module`"),
        ({"script": "/a.py", "module": "a"}, "options: name the program by one of"),
        ({"scrip": "/a.py"}, "options.scrip: recipe script has no such option; did you mean script?"),
        ({"module": "a b"}, "options.module: String should match pattern"),
        ({"script": "/a.py", "args": [True]}, "options.args.0: Input should be a valid string (got True)"),
        ({"script": "/a.py", "args": "--fast"}, "options.args: Input should be a valid tuple (got '--fast')"),
        ({"script": "/a.py", "env": {"RANK": "1"}}, "options.env: RANK is set by the run itself"),
        ({"script": "/a.py", "env": {"RANKZERO_X": "1"}}, "options.env: RANKZERO_X is set by the run itself"),
    ],
)
def test_options_that_are_none_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        script_options(TrainConfig(recipe="script", options=options))
    assert message in str(raised.value)


def test_no_variable_that_the_run_sets_itself_can_be_given(tmp_path: Path) -> None:
    who = RankEnvironment(rank=0, local_rank=0, world_size=1, local_world_size=1).variables()
    for name in {"ROLE_RANK"} | surroundings(RunDir(tmp_path), config("cpu"), {}).keys() | who.keys():
        with pytest.raises(ConfigError, match=f"options.env: {name} is set by the run itself"):
            script_options(config("cpu", env={name: "1"}).train)


def test_an_environment_that_no_process_can_be_started_with_is_the_option_s_fault(tmp_path: Path) -> None:
    run_dir = RunDir(tmp_path)
    run_dir.create(config("cpu", env={"SMALL": "1", "LARGE": "📈" * 100_000}))
    with pytest.raises(ConfigError, match=r"options.env: .* bytes, of which LARGE has 400005; hand over"):
        launch(run_dir)


def test_an_option_of_other_recipes_is_named_with_the_way_out() -> None:
    with pytest.raises(ConfigError) as raised:
        train_config({"recipe": "script", "options": {"module": "train"}, "epochs": 5})
    assert str(raised.value) == "epochs: recipe script takes none; hand it over in options.args"


def test_each_option_of_other_recipes_is_told_under_its_own_name() -> None:
    train = {
        "recipe": "script",
        "options": {"module": "train"},
        "epochs": 5,
        "augment": ["horizontal_flip"],
        "batch": 64,
    }
    with pytest.raises(ValidationError) as raised:
        JobSpec.model_validate({"device": "cpu", "train": train})
    assert {error["loc"] for error in raised.value.errors()} == {("train", "epochs"), ("train", "augment")}


def test_a_programs_ranks_cannot_be_compared(tmp_path: Path) -> None:
    file = tmp_path / "train.yaml"
    file.write_text("recipe: script\noptions: {module: train}\n")
    with pytest.raises(ConfigError, match="cannot be compared"):
        run_parity([str(file), "--world-sizes", "1,2"])


@pytest.mark.parametrize(
    ("options", "field", "message"),
    [
        ({"script": "train.py"}, "train.options.script", "'train.py' has to be an absolute path"),
        ({"module": "train", "cwd": "here"}, "train.options.cwd", "'here' has to be an absolute path"),
        ({"script": "/train.py", "nproc": 2}, "train.options.nproc", "recipe script has no such option"),
    ],
)
def test_a_job_names_the_option_in_error(options: dict[str, Any], field: str, message: str) -> None:
    with pytest.raises(ValidationError) as raised:
        JobSpec.model_validate({"device": "cpu", "train": {"recipe": "script", "options": options}})
    (error,) = raised.value.errors()
    assert error["ctx"]["field"] == field
    assert message in error["msg"]


def test_a_job_of_any_number_of_ranks_is_named_after_its_program_and_needs_a_host_that_knows_scripts() -> None:
    train = {"recipe": "script", "options": {"script": "/home/me/train.py"}}
    spec = JobSpec.model_validate({"device": "cpu", "nproc_per_node": 7, "train": train})
    assert (spec.world_size, spec.shown_name) == (7, "train.py")
    known = Catalog(recipes=(Recipe(name="script", models=()),), data=(DataSet(name="digits"),))
    check(spec, [known])
    old = Catalog(recipes=(Recipe(name="classification", models=("resnet18",)),), data=())
    with pytest.raises(ValueError, match="no registered host knows 'script'"):
        check(spec, [old])
