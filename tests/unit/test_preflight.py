"""The preflight: inputs that are not there are told in the user's own words, before anything is started."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch  # noqa: F401  (where it is loaded, model and devices are looked at as well)

from trainer.errors import CheckpointError, ConfigError, DataError, DeviceError, TrainingError
from trainer.journal import CheckpointSaved, JournalWriter
from trainer.preflight import check_inputs
from trainer.recipes.own_options import OWN_OPTIONS
from trainer.recipes.registry import recipe_names, recipe_type
from trainer.run_dir import RunDir
from trainer.train_file import TrainFile


def check(*, has_own_model: bool = False, **fields: Any) -> None:
    file = TrainFile.of({"model": "resnet18", "data": "digits", "device": "cpu"} | fields)
    check_inputs(file.run_config(), written=file.train, has_own_model=has_own_model)


def refusal(kind: type[TrainingError], **fields: Any) -> str:
    with pytest.raises(kind) as refused:
        check(**fields)
    return str(refused.value)


def journal_checkpoints(run_dir: RunDir, *best: bool) -> None:
    journal = JournalWriter(run_dir.journal)
    for step, is_best in enumerate(best, start=1):
        journal.append(CheckpointSaved, step=step, epoch=step, path=f"{step}.pt", sha256="", size_bytes=0, best=is_best)
    journal.close()


def test_what_is_there_passes(tmp_path: Path) -> None:
    checkpoint = tmp_path / "last.pt"
    checkpoint.touch()
    check()
    check(data=str(tmp_path), resume=str(checkpoint))
    check(model="__main__.Net", has_own_model=True)


def test_a_data_folder_that_is_not_there_is_named_as_written_and_as_it_was_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert refusal(DataError, data="./nowhere") == (
        f"data: folder ./nowhere does not exist (looked for {tmp_path / 'nowhere'})"
    )
    assert refusal(DataError, data=str(tmp_path / "nowhere")) == f"data: folder {tmp_path / 'nowhere'} does not exist"
    (tmp_path / "file").touch()
    assert refusal(DataError, data=str(tmp_path / "file")) == f"data: {tmp_path / 'file'} is not a folder"
    assert refusal(ConfigError, data="digit").startswith("data: 'digit' is no known data set (known: digits,")


def test_a_checkpoint_that_is_not_there_is_named_and_for_a_run_directory_its_best(tmp_path: Path) -> None:
    missing = str(tmp_path / "last.pt")
    assert refusal(CheckpointError, resume=missing) == f"resume: there is no checkpoint {missing}"
    folder = f"resume: {tmp_path} is a folder, and has to be a checkpoint file"
    assert refusal(CheckpointError, resume=str(tmp_path)) == folder
    journal_checkpoints(RunDir(tmp_path), True, True, False)
    assert refusal(CheckpointError, resume=str(tmp_path)) == f"{folder}; the best of this run is {tmp_path / '2.pt'}"


def test_weights_that_are_not_there_are_named_and_a_path_to_some_is_made_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert refusal(ConfigError, weights="mine.pt") == (
        f"weights: there is no file mine.pt (looked for {tmp_path / 'mine.pt'}); default takes torchvision's"
    )
    journal_checkpoints(RunDir(tmp_path), True)
    assert refusal(ConfigError, weights=".") == (
        "weights: . is a folder, and has to be a file of weights; the best of this run is 1.pt"
    )
    (tmp_path / "mine.pt").touch()
    check(weights="mine.pt")
    check(weights="default")
    file = TrainFile.of({"model": "resnet18", "data": "digits", "device": "cpu", "weights": "mine.pt"})
    assert file.run_config().train.weights == str(tmp_path / "mine.pt")


def test_a_warmup_that_outlasts_the_run_is_told() -> None:
    assert refusal(ConfigError, epochs=2, warmup_epochs=3).startswith("warmup_epochs: 3 epochs")


def test_where_torch_is_loaded_a_model_or_device_that_is_not_there_is_told_as_well() -> None:
    assert refusal(ConfigError, model="resnet81").startswith("model: 'resnet81' is no model of classification; did you")
    assert (
        refusal(ConfigError, recipe="classificaton")
        == "recipe: 'classificaton' is unknown; did you mean classification?"
    )
    assert refusal(ConfigError, options={"mixupp": 1}) == "options: mixupp is no option; did you mean mixup?"
    assert refusal(DeviceError, device="999").startswith("device: 'cuda:999' is not on this host")


def test_a_recipe_or_an_option_that_is_not_there_is_told_where_no_torch_is_loaded() -> None:
    code = (
        "import sys\n"
        "from trainer.errors import ConfigError\n"
        "from trainer.preflight import check_inputs\n"
        "from trainer.train_file import TrainFile\n"
        "for field, value in {'recipe': 'detecton', 'options': {'mixupp': 1}}.items():\n"
        "    file = TrainFile.of({'model': 'resnet18', 'data': 'digits', 'device': 'cpu', field: value})\n"
        "    try:\n"
        "        check_inputs(file.run_config(), written=file.train)\n"
        "    except ConfigError as error:\n"
        "        print(error)\n"
        "print('torch' in sys.modules)"
    )
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert told.stdout.splitlines() == [
        "recipe: 'detecton' is unknown; did you mean detection or segmentation?",
        "options: mixupp is no option; did you mean mixup?",
        "False",
    ]


def test_what_is_checked_without_torch_are_the_options_that_our_recipes_take() -> None:
    taken = {name: recipe_type(name).options_model for name in OWN_OPTIONS}
    assert taken == OWN_OPTIONS
    assert [name for name in recipe_names() if recipe_type(name).__module__.startswith("trainer.")] == [*OWN_OPTIONS]


def test_a_node_of_several_comes_to_the_others_with_what_is_wrong() -> None:
    check(data="./nowhere", nnodes=2, master_port=29400)
