"""One trainer, three ways to start it: from a script, from the command line, and under torchrun."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.distributed.runs import RUN_S, TINY, Run, final_state, prepare, records, start, write_train_file
from tests.waiting import wait_until
from trainer.journal import Log, Started
from trainer.run_dir import EXIT_USAGE, RunDir


def kinds(run_dir: RunDir) -> list[str]:
    return [record.kind for record in records(run_dir)]


@pytest.mark.timeout(400)
def test_a_script_the_command_and_torchrun_learn_digits_to_97_percent_and_write_the_same_journal(
    tmp_path: Path,
) -> None:
    options = {"model": "resnet18", "data": "digits", "image_size": 16, "epochs": 5, "batch": 64, "lr": 0.05}
    options |= {"num_workers": 0, "device": "cpu"}
    script = tmp_path / "script.py"
    script.write_text(
        "from trainer import train\n"
        f"result = train(**{options | {'nproc_per_node': 2, 'output': 'script'}!r})\n"
        "print(result.best_checkpoint, len(result.epochs), result.values['val/accuracy'])\n"
    )
    scripted = start(sys.executable, str(script), folder=tmp_path)
    assert scripted.returncode == 0, scripted.stderr
    path, epochs, accuracy = scripted.stdout.split()
    assert Path(tmp_path, path).is_file()
    assert epochs == "5"
    assert float(accuracy) >= 0.97

    (tmp_path / "train.yaml").write_text(yaml.safe_dump(options))
    command = ("-m", "trainer", "train.yaml")
    launched = start(sys.executable, *command, "--nproc-per-node", "2", "--output", "command", folder=tmp_path)
    assert launched.returncode == 0, launched.stderr
    assert "epoch 5/5" in launched.stderr

    torchrun = str(Path(sys.executable).with_name("torchrun"))
    wrapped = start(torchrun, "--nproc-per-node", "2", *command, "--output", "torchrun", folder=tmp_path)
    assert wrapped.returncode == 0, wrapped.stderr
    assert "epoch 5/5" in wrapped.stderr

    run_dirs = [RunDir(tmp_path / name) for name in ("script", "command", "torchrun")]
    assert kinds(run_dirs[0]) == kinds(run_dirs[1]) == kinds(run_dirs[2])
    finals = [run_dir.completed() for run_dir in run_dirs]
    assert [final.values for final in finals if final is not None] == [finals[0].values if finals[0] else {}] * 3
    assert final_state(run_dirs[0]) == final_state(run_dirs[1]) == final_state(run_dirs[2])


def test_an_interrupted_script_gets_an_error_it_can_catch(tmp_path: Path, images: Path) -> None:
    script = tmp_path / "script.py"
    options = TINY | {"data": str(images), "epochs": 1000, "batch": 8, "device": "cpu", "output": "run"}
    script.write_text(
        "from trainer import train\nfrom trainer.errors import RunInterruptedError\n"
        f"try:\n    train(**{options!r})\n"
        "except RunInterruptedError as error:\n    print('interrupted:', error)\n"
    )
    process = subprocess.Popen([sys.executable, str(script)], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    with process:
        run_dir = RunDir(tmp_path / "run")
        wait_until(lambda: "started" in kinds(run_dir), timeout_s=RUN_S, what="the first step")
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=RUN_S)
    assert output.startswith("interrupted: stopped by SIGINT")
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("model: resnet18\ndata: digits\nepoch: 3\n", "epoch is no option; did you mean epochs?"),
        ("model: resnet18\ndata: ../nowhere\ndevice: cpu\n", "data: folder ../nowhere does not exist (looked for /"),
        ("model: resnet18\ndata: digits\ndevice: cpu\nresume: last.pt\n", "resume: there is no checkpoint last.pt"),
        ("model: resnet18\ndata: digits\ndevice: 0-3\n", "0-3"),
        ("model: resnet18\ndata: digits\ndevice: cpu\nnproc_per_node: 3\nbatch: 10\n", "9 or 12"),
        ("model: resnet18\ndata: digits\ndevice: cpu\nnproc_per_node: two\n", "nproc_per_node"),
        ("model: resnet18\ndata: digits\ndevice: cpu\nnnodes: 2\n", "master_port"),
        ("model: resnet18\ndata: digits\ndevice: 0,1\nstrategy: single\n", "strategy: 'single'"),
        ("model: resnet18\ndata: digits\nlr: .nan\n", "lr"),
        ("- a list\n", "not a mapping"),
        ("model: [\n", "YAML"),
    ],
    ids=["field", "data", "resume", "device", "batch", "count", "nodes", "strategy", "nan", "list", "syntax"],
)
def test_a_train_file_that_cannot_run_is_refused_with_what_is_wrong(
    content: str, complaint: str, tmp_path: Path
) -> None:
    (tmp_path / "train.yaml").write_text(content)
    refused = start(sys.executable, "-m", "trainer", "train.yaml", folder=tmp_path)
    assert refused.returncode == EXIT_USAGE
    assert refused.stderr.startswith("error: ")
    assert complaint in refused.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["train.yaml"]


def test_an_output_that_holds_a_run_already_is_refused(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "config.json").write_text("{}")
    write_train_file(tmp_path, data="digits", device="cpu")
    refused = start(sys.executable, "-m", "trainer", "train.yaml", "--output", "old", folder=tmp_path)
    assert refused.returncode == EXIT_USAGE
    assert "holds a run already" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("run", "--device", "0"), "--device: a run directory"),
        (("run", "--output", "elsewhere"), "--output: a run directory"),
        (("run", "checkpoint.pt"), "checkpoint: a run directory"),
        (("train.yaml", "checkpoint.pt"), "checkpoint: a train.yaml"),
        (("catalog", "--nproc-per-node", "2"), "--nproc-per-node: catalog"),
        (("run", "--nnodes", "2"), "--nnodes: a run directory"),
        (("evaluate", "checkpoint.pt", "--master-addr", "alpha"), "--master-addr: evaluate"),
        (("evaluate", "checkpoint.pt", "--output", "elsewhere"), "--output: evaluate"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_an_argument_that_would_be_without_effect_is_refused(
    arguments: tuple[str, ...], complaint: str, tmp_path: Path
) -> None:
    (tmp_path / "run").mkdir()
    refused = start(sys.executable, "-m", "trainer", *arguments, folder=tmp_path)
    assert refused.returncode == EXIT_USAGE
    assert complaint in refused.stderr
    assert [path.name for path in tmp_path.rglob("*")] == ["run"]


def test_the_catalog_names_recipes_models_data_and_options(tmp_path: Path) -> None:
    from trainer.catalog import Catalog

    printed = start(sys.executable, "-m", "trainer", "catalog", folder=tmp_path)
    assert printed.returncode == 0, printed.stderr
    catalog = Catalog.model_validate_json(printed.stdout)
    assert [recipe.name for recipe in catalog.recipes] == ["classification", "segmentation", "detection", "script"]
    assert "resnet18" in catalog.recipes[0].models
    assert {"digits", "synthetic", "cifar10"} <= {data.name for data in catalog.data}
    assert json.loads(printed.stdout)["train_schema"]["properties"]["batch"]["description"]


def test_one_rank_for_several_simulated_devices_says_that_they_compute_as_one(tmp_path: Path, images: Path) -> None:
    run_dir = prepare(tmp_path / "run", data=images, epochs=1, batch=8, strategy="dp")
    simulated = {"devices": ("cuda:0", "cuda:1"), "simulated": True}
    run_dir.create(run_dir.read_config().model_copy(update=simulated))
    Run(run_dir).succeed()
    started = records(run_dir)[0]
    assert isinstance(started, Started)
    assert (started.world_size, started.batch_per_rank) == (1, 8)
    assert started.devices == ("cuda:0 (simulated)", "cuda:1 (simulated)")
    warnings = [record.message for record in records(run_dir) if isinstance(record, Log)]
    assert any("the 2 simulated ones compute as one" in warning for warning in warnings)
    assert [path.name for path in run_dir.ranks.glob("*.log")] == ["0.log"]
