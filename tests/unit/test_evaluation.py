"""Evaluation: what a recipe's summary has to have."""

import re
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader

from trainer.config import TrainConfig
from trainer.errors import ConfigError
from trainer.evaluation import evaluate
from trainer.process_group import ProcessGroup
from trainer.recipes.classification import Classification
from trainer.recipes.recipe import Evaluation, Quantity, TaskData
from trainer.reporting import METRIC_NAME


class Losses(Classification):
    """A recipe of somebody's own, which measures a loss and tells what the test has it tell."""

    name = "losses"
    told: Mapping[str, float] | None
    measured: Callable[[torch.Tensor], dict[str, torch.Tensor]] = staticmethod(lambda losses: {"loss": losses})

    def quantities(self, data: TaskData) -> tuple[Quantity, ...]:  # noqa: ARG002  (the protocol's signature)
        return (Quantity("loss"),)

    def measure(self, model: nn.Module, batch: torch.Tensor) -> dict[str, torch.Tensor]:
        return self.measured(model(batch)[:, 0])

    def summarize(self, totals: Mapping[str, torch.Tensor], count: int, data: TaskData) -> Evaluation:  # noqa: ARG002  (the protocol's signature)
        return Evaluation(dict(self.told)) if self.told is not None else None  # type: ignore[return-value]  # the fault


def metrics(**told: float) -> dict[str, float]:
    """Validate with a recipe whose summary is these metrics."""
    return validated({f"val/{name}": value for name, value in told.items()})


def validated(
    told: dict[str, float] | None,
    alive: Callable[[], None] = lambda: None,
    waits: Callable[[], None] = lambda: None,
    **parts: Any,
) -> dict[str, float]:
    recipe = Losses(TrainConfig(model="resnet18", data="digits"))
    recipe.told = told
    vars(recipe).update(parts)
    samples = torch.ones(3, 2)
    found = evaluate(
        nn.Linear(2, 1),
        DataLoader(samples, batch_size=2),  # type: ignore[arg-type]  # a tensor is a sequence of samples
        recipe=recipe,  # type: ignore[arg-type]  # the protocol's class variables are plain attributes in ours
        data=TaskData(train=samples, val=samples, samples=""),  # type: ignore[arg-type]  # a list is sized and indexed, too
        group=ProcessGroup.alone(torch.device("cpu")),
        matter="test",
        autocast=nullcontext,
        stop_requested=lambda: False,
        alive=alive,
        waits=waits,
    )
    assert found is not None
    return found.metrics


def test_a_rank_says_that_it_is_alive_after_each_batch_and_then_that_it_waits_for_the_others() -> None:
    said: list[str] = []
    told = {"val/accuracy": 1.0, "val/loss": 1.0}
    validated(told, alive=lambda: said.append("alive"), waits=lambda: said.append("waits"))
    assert said == ["alive", "alive", "waits"]


@pytest.mark.parametrize(
    ("told", "complaint"),
    [
        ({"loss": 1.0}, "recipe losses: summarize returns no 'val/accuracy', its best_metric (it returns val/loss)"),
        (
            {"accuracy": 1.0, "top5": 1.0},
            "recipe losses: summarize returns no 'val/loss', its tie_metric (it returns val/accuracy, val/top5)",
        ),
        ({}, "recipe losses: summarize returns no 'val/accuracy', its best_metric (it returns none)"),
        (
            {"accuracy": 1.0, "loss": 1.0, "two\nlines": 1.0},
            f"recipe losses: summarize returns a metric 'val/two\\nlines'; a name is {METRIC_NAME}",
        ),
    ],
)
def test_a_recipe_that_does_not_tell_its_own_metrics_is_refused(told: dict[str, float], complaint: str) -> None:
    with pytest.raises(ConfigError) as refused:
        metrics(**told)
    assert str(refused.value) == complaint


def test_a_recipe_whose_summary_is_none_is_refused_and_not_taken_for_one_that_was_stopped() -> None:
    with pytest.raises(ConfigError, match="recipe losses: summarize returns NoneType, and no Evaluation"):
        validated(None)


def test_metrics_are_handed_on_to_the_last_bit() -> None:
    told = {"accuracy": 1 / 3, "loss": float("inf"), "least": 5e-324}
    assert metrics(**told) == {f"val/{name}": value for name, value in told.items()}
    assert metrics(accuracy=torch.tensor(0.25), loss=float("nan"))["val/accuracy"] == 0.25  # type: ignore[arg-type]  # as authors do


@pytest.mark.parametrize(
    ("measured", "complaint"),
    [
        (lambda _: {}, "returns no 'loss', which quantities names"),
        (
            lambda losses: {"loss": losses.mean()},
            "returns 'loss' of shape (), which for so many samples has to be (1,)",
        ),
        (lambda losses: {"loss": losses[:, None]}, "of shape (2, 1), which for so many samples has to be (2,)"),
    ],
    ids=["missing", "mean of the batch", "column"],
)
def test_a_recipe_whose_measure_is_not_what_its_quantities_say_is_refused(measured: object, complaint: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(complaint)):
        validated({}, measured=measured)
