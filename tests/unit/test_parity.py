"""Parity before any run: what cannot be compared, what cannot be exact, and what a signal leaves."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, NoReturn

import pytest
import torch
from torch.utils.data import TensorDataset
from torchvision.models import get_model

from tests.distributed.runs import TINY, draw_images
from trainer.checkpoints import Checkpoint
from trainer.config import TrainConfig
from trainer.double_precision import in_double
from trainer.errors import ConfigError, DataError, DeviceError, RunInterruptedError
from trainer.inexactness import inexactness
from trainer.interrupting import interruptible
from trainer.parity import parity
from trainer.process_group import ProcessGroup
from trainer.recipes.recipe import TaskData
from trainer.recipes.registry import build_recipe
from trainer.run_dir import RunDir
from trainer.train_file import TrainFile


def never_run(run_dir: RunDir) -> NoReturn:
    raise AssertionError(f"{run_dir.path} was launched")


def prove(world_sizes: tuple[int, ...], *, steps: int = 3, **fields: Any) -> None:
    file = TrainFile.of(TINY | {"data": "./nowhere", "device": "cpu", "batch": 8} | fields)
    parity(file, world_sizes, steps=steps, tolerance=1e-5, run=never_run)


def test_a_number_of_ranks_that_the_batch_does_not_divide_among_is_refused_with_those_that_do() -> None:
    with pytest.raises(ConfigError, match=r"batch 12 does not divide among 5 ranks; of 1 to 8.* among 1, 2, 3, 4, 6"):
        prove((1, 5, 8), batch=12)


def test_a_batch_that_depends_on_the_number_of_ranks_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^batch: -1 .* write a number"):
        prove((1, 2), batch=-1)


def test_more_ranks_than_the_list_has_devices_are_refused() -> None:
    with pytest.raises(DeviceError, match=r"4 ranks need as many devices, and device 'cuda:1,cuda:0' names 2"):
        prove((1, 2, 4), device="1,0")


def test_a_number_of_ranks_beyond_all_reason_is_refused_at_once() -> None:
    with pytest.raises(ConfigError, match=r"does not divide among 10000000000 ranks; of 1 to 8, it does among 1, 2, 4"):
        prove((1, 10_000_000_000))


@pytest.mark.parametrize(
    ("world_sizes", "steps", "said"),
    [((2,), 3, "name two or more"), ((1, 0), 3, "0 is not a number of ranks"), ((1, 2), 0, "0 steps train nothing")],
)
def test_what_compares_nothing_is_refused(world_sizes: tuple[int, ...], steps: int, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        prove(world_sizes, steps=steps)


def test_a_strategy_of_one_process_is_refused_for_several_ranks_on_the_cpu() -> None:
    with pytest.raises(ConfigError, match="strategy"):
        prove((1, 2), strategy="single")


def test_data_that_are_not_there_are_told_before_anything_is_launched() -> None:
    with pytest.raises(DataError, match="nowhere"):
        prove((1, 2))


def test_a_device_without_float64_is_refused_unless_float32_is_asked_for() -> None:
    with pytest.raises(DeviceError, match=r'"mps" has no float64.*"cpu"'):
        prove((1, 1), device="mps")


def test_a_proof_from_a_checkpoint_takes_its_steps_beyond_it(tmp_path: Path) -> None:
    images = draw_images(tmp_path / "images", train=4, val=2)
    fields = TINY | {"data": str(images), "device": "cpu", "batch": 2, "resume": str(tmp_path / "step.pt")}
    file = TrainFile.of(fields)
    recipe = build_recipe(file.train)
    checkpoint = Checkpoint(
        model=recipe.build_model(recipe.build_data(ProcessGroup.alone(torch.device("cpu")))).state_dict(),
        unaveraged=None,
        optimizer={},
        epoch=20,
        step_in_epoch=0,
        step=40,
        steps_per_epoch=2,
        seed=0,
        world_size=1,
        config={},
        class_names=(),
        samples="",
        values={},
        metric=None,
    )
    torch.save(vars(checkpoint), tmp_path / "step.pt")
    launched = []

    def look(run_dir: RunDir) -> NoReturn:
        launched.append(run_dir.read_config())
        raise RunInterruptedError("seen enough")

    with pytest.raises(RunInterruptedError):
        parity(file, (2, 1), steps=3, tolerance=1e-5, run=look)

    assert [(config.max_steps, config.devices) for config in launched] == [(43, ("cpu", "cpu"))]


def sentences(*, double: bool = True, devices: tuple[str, ...] = ("cpu",), **options: Any) -> str:
    config = TrainConfig.model_validate({"data": "digits", "dropout": None} | options)
    model = get_model(config.model, weights=None, num_classes=2)
    recipe = build_recipe(config)
    return "\n".join(inexactness(config, recipe=recipe, model=model, devices=devices, double=double))


def test_a_configuration_of_synchronized_batchnorm_and_no_dropout_has_nothing_that_cannot_be_exact() -> None:
    assert sentences(model="resnet18") == ""
    assert sentences(model="resnet18", sync_bn=True, optimizer="adamw", amp="bf16", devices=("cuda:0",)) == ""


def test_what_cannot_be_exact_is_named_with_its_layer_and_the_way_out() -> None:
    assert "BatchNorm (first: bn1)" in sentences(model="resnet18", sync_bn=False)
    assert 'strategy "ddp"' in sentences(model="resnet18", strategy="dp")
    assert "dropout (first: classifier.0)" in sentences(model="squeezenet1_1")
    assert "stochastic depth (first: features.1.1.stochastic_depth)" in sentences(model="convnext_tiny")


@pytest.mark.parametrize("name", ["convnext_tiny", "efficientnet_b0", "squeezenet1_1", "swin_t"])
def test_no_dropout_leaves_nothing_that_drops_at_random(name: str) -> None:
    config = TrainConfig(model=name, data="digits", dropout=0)
    recipe = build_recipe(config)
    empty = TensorDataset(torch.empty(0))
    model = recipe.build_model(TaskData(train=empty, val=empty, samples="", class_names=("a", "b")))
    assert inexactness(config, recipe=recipe, model=model, devices=("cpu",), double=True) == ()


def test_a_detectors_choices_are_a_reason_in_float32_only() -> None:
    assert sentences(model="resnet18", recipe="detection") == ""
    assert "NMS" in sentences(model="resnet18", recipe="detection", double=False)


def test_rounding_is_a_reason_in_float32_only() -> None:
    said = sentences(model="resnet18", optimizer="adamw", amp="bf16", devices=("cuda:0",), double=False)

    for word in ("float32", "amp", "TF32", "adamw"):
        assert word in said


def test_a_model_in_double_precision_takes_images_as_they_come_and_computes_the_same() -> None:
    torch.manual_seed(0)
    model = get_model("squeezenet1_1", weights=None, num_classes=2).eval()
    images = torch.rand(2, 3, 32, 32)
    with torch.no_grad():
        single = model(images)
        double = in_double(model)(images)

    assert double.dtype == torch.float64
    torch.testing.assert_close(double.float(), single)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_that_stops_a_run_is_an_exception_between_runs_and_the_handlers_come_back(
    number: signal.Signals,
) -> None:
    def wait_for_signal() -> None:
        with interruptible():
            os.kill(os.getpid(), number)
            threading.Event().wait(10)

    before = signal.getsignal(number)
    with pytest.raises(RunInterruptedError, match=number.name):
        wait_for_signal()

    assert signal.getsignal(number) == before


def test_a_signal_that_an_import_swallows_is_heard_at_the_end_of_the_block() -> None:
    reached = []

    def begin(swallowed: type[BaseException]) -> None:
        with interruptible():
            with contextlib.suppress(swallowed):
                os.kill(os.getpid(), signal.SIGTERM)
                threading.Event().wait(10)
            reached.append(swallowed.__name__)
        reached.append("after the block")

    for swallowed in (Exception, BaseException):  # the first as packages guard their optional parts
        with pytest.raises(RunInterruptedError, match="SIGTERM"):
            begin(swallowed)
    assert reached == ["BaseException"]


def test_a_ctrl_c_before_anything_has_begun_ends_the_command_without_a_traceback() -> None:
    code = (
        "import os, runpy, signal\n"
        "import trainer.parent_death\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell's background jobs ignore it
        "trainer.parent_death.die_with_parent = lambda: os.kill(os.getpid(), signal.SIGINT)\n"
        "runpy.run_module('trainer', run_name='__main__')\n"
    )
    command = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (command.returncode, command.stderr) == (-signal.SIGINT, "")


def test_a_signal_between_two_runs_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    images = draw_images(tmp_path / "images", train=4, val=2)

    def stop(run_dir: RunDir) -> NoReturn:
        assert run_dir.config.exists()
        os.kill(os.getpid(), signal.SIGTERM)
        raise AssertionError("the signal was not heard")

    file = TrainFile.of(TINY | {"data": str(images), "device": "cpu", "batch": 2})
    with pytest.raises(RunInterruptedError):
        parity(file, (1, 2), steps=1, tolerance=1e-5, run=stop)

    assert list((tmp_path / "tmp").iterdir()) == []
