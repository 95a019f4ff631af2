"""The command `python -m trainer`: run a run directory or a train.yaml, print the catalog, evaluate a checkpoint.

`python -m trainer parity` and `advise` have options of their own (trainer.parity_command, trainer.advise_command).
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from trainer.advise_command import run_advise
from trainer.answer import Answer
from trainer.config import SCRIPT
from trainer.environment import RankEnvironment, is_rank
from trainer.error_report import ErrorReport
from trainer.errors import Cause, ConfigError, TrainingError, os_error_cause, with_cause
from trainer.journal import finite_values
from trainer.launch import RunDirBusyError, run_dir_tag
from trainer.local_run import completion, new_run_dir, run_in
from trainer.outcome import Outcome, failed
from trainer.parity_command import run_parity
from trainer.preflight import best_of, check_inputs
from trainer.run_dir import EXIT_DISK_FULL, EXIT_FAILED, EXIT_USAGE, RUN_DIR_VARIABLE, RunDir
from trainer.script.options import script_options
from trainer.terminal import say
from trainer.train_file import LAUNCH_FIELDS, TrainFile


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and end the process with its status."""
    try:
        status = _status_of(sys.argv[1:] if arguments is None else arguments)
    except TrainingError as error:
        say(f"error: {error}")
        # Beside peers that did not come, nothing but what was asked for is at fault before there is a run.
        status = EXIT_FAILED if error.cause is Cause.COMMUNICATION else EXIT_USAGE
    except OSError as error:
        say(f"error: {error}")
        status = EXIT_DISK_FULL if os_error_cause(error) is Cause.DISK_FULL else EXIT_FAILED
    _end_with(status)


def _status_of(words: Sequence[str]) -> int:
    if words and words[0] == "parity":
        return run_parity(words[1:])
    if words and words[0] == "advise":
        return run_advise(words[1:])
    return _run(_parser().parse_args(words))


def _run(options: argparse.Namespace) -> int:
    target: str = options.target
    if target == "catalog":
        _refuse_unused(options, target)
        from trainer.catalog import build_catalog  # imports torchvision

        answer = Answer()
        answer.give(build_catalog(tell=say).model_dump_json(indent=2))
        return 0
    if target == "evaluate":
        _refuse_unused(options, target, "checkpoint", "device")
        return _evaluate(options)
    if Path(target).is_dir():
        _refuse_unused(options, "a run directory, whose config.json says what to run and where,")
        return _run_directory(RunDir(Path(target)))
    _refuse_unused(options, "a train.yaml", "device", "output", *LAUNCH_FIELDS)
    return _run_file(Path(target), options)


def _refuse_unused(options: argparse.Namespace, what: str, *used: str) -> None:
    """Raise ConfigError for an argument that would be without effect: whoever gave it expects one."""
    for name in sorted({"checkpoint", "device", "output", *LAUNCH_FIELDS}.difference(used)):
        if (value := getattr(options, name)) is not None:
            shown = "checkpoint" if name == "checkpoint" else f"--{name.replace('_', '-')}"
            raise ConfigError(f"{shown}: {what} takes none (got {str(value)!r})")


def _run_directory(run_dir: RunDir) -> int:
    os.environ[RUN_DIR_VARIABLE] = run_dir_tag(run_dir)
    try:
        outcome = run_in(run_dir)
    except RunDirBusyError:
        raise  # the directory, and what it says of its error, are the other run's
    except TrainingError as error:
        failed(run_dir, ErrorReport.of(error, cause=error.cause, rank=None, traceback=None))
        raise
    return _tell(outcome, run_dir)


def _run_file(path: Path, options: argparse.Namespace) -> int:
    file = TrainFile.read(path, **{name: getattr(options, name) for name in ("device", *LAUNCH_FIELDS)})
    if is_rank(os.environ):
        if file.train.recipe == SCRIPT:
            raise ConfigError(
                "recipe: torchrun has started this, and can start the script itself: `torchrun … "
                f"{script_options(file.train).program}`; `python -m trainer {path}` runs it without torchrun"
            )
        from trainer.torchrun import run_as_rank  # imports torch

        run_as_rank(file, RankEnvironment.read(os.environ), output=options.output)
    config = file.run_config()
    check_inputs(config, written=file.train)
    run_dir = RunDir(new_run_dir(options.output))
    run_dir.create(config)
    os.environ[RUN_DIR_VARIABLE] = run_dir_tag(run_dir)
    say(f"run directory: {run_dir.path}")
    return _tell(run_in(run_dir), run_dir)


def _evaluate(options: argparse.Namespace) -> int:
    if options.checkpoint is None:
        raise ConfigError("evaluate: name the checkpoint, `python -m trainer evaluate CHECKPOINT`")
    path: Path = options.checkpoint
    if path.is_dir():
        raise ConfigError(f"evaluate: it takes a checkpoint file, and {path} is a folder{best_of(path)}")
    from trainer.reload import evaluate_checkpoint  # imports torch

    answer = Answer()
    metrics = evaluate_checkpoint(path, device=options.device or "cpu")
    answer.give(json.dumps(finite_values(metrics)[0]))
    return 0


def _tell(outcome: Outcome, run_dir: RunDir) -> int:
    if outcome.completed is not None:
        say(completion(run_dir, outcome.completed))
    elif outcome.has_done_its_part:
        say("completed: this node has done its part; metrics and checkpoints are in the run directory of node 0")
    elif outcome.error is not None:
        # Where the fault is in what was asked for, the message says it; lines of our own code would only hide it.
        trace = outcome.error.traceback if outcome.error.cause in (Cause.EXCEPTION, Cause.HANG) else None
        before = f"{trace.rstrip()}\n" if trace else ""
        say(f"{before}{with_cause(outcome.error.cause, outcome.error.said)}")
    return outcome.exit_status


def _end_with(status: int) -> NoReturn:
    """End with `status`, whatever became of what was said: Python would end with 120 for a log on a full disk."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        os._exit(status)
    sys.exit(status)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m trainer", description="Train a model on a list of devices.")
    parser.add_argument(
        "target", help="a run directory, a train.yaml, or the word `catalog`, `evaluate`, `parity` or `advise`"
    )
    parser.add_argument("checkpoint", type=Path, nargs="?", help="the checkpoint to evaluate")
    parser.add_argument(
        "--device", help='where: "0,1", "cpu", "mps" or "auto" (with a train.yaml); one device for `evaluate`'
    )
    parser.add_argument("--nproc-per-node", type=int, metavar="N", help="ranks to start on the CPU (with a train.yaml)")
    parser.add_argument("--nnodes", type=int, metavar="N", help="hosts that train together (with a train.yaml)")
    parser.add_argument("--node-rank", type=int, metavar="N", help="which of them this is, from 0")
    parser.add_argument("--master-addr", metavar="HOST", help="name or address of node 0")
    parser.add_argument("--master-port", type=int, metavar="PORT", help="free port of node 0, at which the ranks meet")
    parser.add_argument(
        "--hang-limit-s", type=float, metavar="S", help="end the run once a rank makes no progress for so many seconds"
    )
    parser.add_argument("--output", type=Path, metavar="DIR", help="run directory to make (default: below ./runs)")
    return parser
