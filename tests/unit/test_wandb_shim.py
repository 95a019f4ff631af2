"""The stand-in for wandb: what a script's calls become."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from rankzero import wandb


@pytest.fixture(autouse=True)
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[int, dict[str, float]]]]:
    """What is told to the run, by step."""
    calls: list[tuple[int, dict[str, float]]] = []
    monkeypatch.setattr(wandb, "report_values", lambda values, *, step: calls.append((step, dict(values))))
    monkeypatch.setattr(wandb, "_warned", set())
    monkeypatch.setattr(wandb, "_next_step", 0)
    yield calls
    wandb.finish()
    wandb.config.clear()


def test_steps_count_as_wandb_counts_them(told: list[Any]) -> None:
    run = wandb.init(project="any", tags=["a"])
    wandb.log({"loss": 3})
    wandb.log({"loss": 2}, commit=False)
    run.log({"accuracy": 0.5})
    wandb.log({"loss": 1}, step=10)
    wandb.log({"accuracy": 0.75}, step=10)
    wandb.log({"loss": 0}, step=10, commit=True)
    with pytest.warns(UserWarning, match="step 4 is before step 11"):
        wandb.log({"loss": 9}, step=4)
    wandb.log({"loss": 0})
    assert told == [
        *((0, {"loss": 3}), (1, {"loss": 2}), (1, {"accuracy": 0.5})),
        *((10, {"loss": 1}), (10, {"accuracy": 0.75}), (10, {"loss": 0}), (11, {"loss": 0})),
    ]
    assert wandb.summary == {"loss": 0, "accuracy": 0.75}


def test_what_a_second_run_logs_is_told_behind_the_first(told: list[Any]) -> None:
    def fold(loss: int) -> None:
        run = wandb.init()
        wandb.log({"loss": loss})
        wandb.log({"loss": loss}, step=5)
        assert run.step == 5
        wandb.finish()

    fold(3)
    with pytest.warns(UserWarning, match="told from step 6 on"):
        fold(2)
    fold(1)
    assert told == [(step, {"loss": 3 - step // 6}) for step in (0, 5, 6, 11, 12, 17)]


def test_numbers_are_told_and_all_else_is_left_out_with_one_warning_each(told: list[Any]) -> None:
    wandb.init()

    def use() -> None:
        wandb.log({"train": {"loss": np.float32(0.5)}, "best": True, "note": "text", "image": wandb.Image(None)})
        wandb.watch(object(), log="all")

    with pytest.warns(UserWarning, match="left out") as warned:
        use()
    assert len(warned) == 4  # the text, the image as a value, wandb.Image and wandb.watch
    use()  # a warning would be an error here
    assert told == [(step, {"train.loss": 0.5, "best": 1.0}) for step in (0, 1)]


def test_a_run_is_there_from_init_to_finish() -> None:
    with pytest.raises(wandb.Error, match=r"wandb\.init"):
        wandb.log({"loss": 1})
    with wandb.init(config={"lr": 0.1}) as run:
        assert wandb.run is run is wandb.init(config={"epochs": 3})
        wandb.config.update({"batch": 8})
        wandb.config.seed = 1
        assert dict(run.config) == {"lr": 0.1, "epochs": 3, "batch": 8, "seed": 1}
        assert (wandb.config.lr, wandb.config["epochs"]) == (0.1, 3)
        assert not hasattr(wandb.config, "missing")
    with pytest.raises(wandb.Error):
        wandb.log({"loss": 1})
