"""Evaluation: every validation sample counted exactly once, by whichever rank."""

import json
from collections.abc import Callable, Mapping, Sequence, Sized
from contextlib import AbstractContextManager
from math import prod

import torch
from torch import nn
from torch.utils.data import DataLoader

from trainer.data.loading import on_device
from trainer.errors import ConfigError
from trainer.process_group import ProcessGroup
from trainer.recipes.recipe import Evaluation, Quantity, Recipe, TaskData
from trainer.reporting import METRIC_NAME, is_metric_name


def evaluate(
    model: nn.Module,
    loader: "DataLoader[object]",
    *,
    recipe: Recipe,
    data: TaskData,
    group: ProcessGroup,
    matter: str,
    autocast: Callable[[], AbstractContextManager[object]],
    stop_requested: Callable[[], bool],
    alive: Callable[[], None],
    waits: Callable[[], None] = lambda: None,
) -> Evaluation | None:
    """Return what the recipe finds in all ranks' shares together, or None on every rank if any was asked to stop.

    `model` is the bare model, not DDP's wrapper: shares differ in length, so no collective may be in the forward pass.
    The only one is the sum at the end, which also carries whether a rank was asked to stop and left early; so no rank
    waits for one that has gone. What is gathered is in it too: each rank fills in the rows of its own samples.

    Rank 0 alone summarises, which may take as long as COCO's evaluation does, and tells the others the metrics, to the
    last bit; the figures of each class are for the journal, and rank 0's only. `matter` tells this evaluation from the
    others of the run. `alive` is called after each batch, and `waits` once this rank's share is measured: the rest is
    up to the other ranks and the summary.

    Raises ConfigError on every rank where a metric is missing that the recipe says it has, or one has a name that is
    none, on rank 0 where its summary is none, and on the rank that measures it where a quantity is not of the shape
    that it is to have.
    """
    group.align_buffers(model)
    assert isinstance(data.val, Sized)
    quantities = recipe.quantities(data)
    totals = _Totals(quantities, samples=len(data.val), group=group)
    model.eval()
    with torch.inference_mode():
        for batch in loader:
            if stop_requested():
                totals.leave_early()
                break
            with autocast():
                measured = recipe.measure(model, data.prepare_val(on_device(batch, group.device)))
            _refuse_other_shapes(recipe, quantities, measured)
            totals.add(measured)
            alive()
    model.train()
    waits()
    if not totals.sum_over_ranks():
        return None
    found = _summary(recipe, totals, data) if group.rank == 0 else Evaluation({})
    # JSON keeps a float as it is, and Python's knows NaN. A recipe may have a tensor of one element for a float.
    own = json.dumps({name: float(value) for name, value in found.metrics.items()})
    metrics: dict[str, float] = json.loads(group.share(f"evaluation/{matter}", own))
    _check_names(recipe, metrics)
    return Evaluation(metrics, found.by_class)


def _refuse_other_shapes(recipe: Recipe, quantities: Sequence[Quantity], measured: Mapping[str, torch.Tensor]) -> None:
    """Raise ConfigError: a mean over the batch in place of its samples' values, say, would pass for their sum."""
    if missing := [quantity.name for quantity in quantities if quantity.name not in measured]:
        raise ConfigError(f"recipe {recipe.name}: measure returns no {missing[0]!r}, which quantities names")
    shapes = {quantity: tuple(getattr(measured[quantity.name], "shape", ())) for quantity in quantities}
    samples = next((shape[0] for shape in shapes.values() if shape), 1)
    for quantity, shape in shapes.items():
        if shape != (expected := (samples, *quantity.shape)):
            raise ConfigError(
                f"recipe {recipe.name}: measure returns {quantity.name!r} of shape {shape}, which for so many samples "
                f"has to be {expected}"
            )


def _summary(recipe: Recipe, totals: "_Totals", data: TaskData) -> Evaluation:
    found: object = recipe.summarize(totals.by_quantity(), totals.count, data)
    if not isinstance(found, Evaluation):
        raise ConfigError(f"recipe {recipe.name}: summarize returns {type(found).__name__}, and no Evaluation")
    return found


def _check_names(recipe: Recipe, metrics: Mapping[str, float]) -> None:
    if unfit := [name for name in metrics if not is_metric_name(name)]:
        raise ConfigError(
            f"recipe {recipe.name}: summarize returns a metric {unfit[0][:80]!r}; a name is {METRIC_NAME}"
        )
    for part in ("best_metric", "tie_metric"):
        if (name := getattr(recipe, part)) not in metrics:
            there = ", ".join(sorted(metrics)) or "none"
            raise ConfigError(f"recipe {recipe.name}: summarize returns no {name!r}, its {part} (it returns {there})")


class _Totals:
    """What one rank, and in the end all of them, have measured: one vector, so that one sum brings all of it."""

    def __init__(self, quantities: Sequence[Quantity], *, samples: int, group: ProcessGroup) -> None:
        self._quantities, self._samples, self._group = quantities, samples, group
        self._device = torch.device("cpu") if group.device.type == "mps" else group.device  # MPS has no float64
        sizes = [prod(quantity.shape) * (samples if quantity.is_gathered else 1) for quantity in quantities]
        # The quantities, then the number of samples, then the number of ranks that left early.
        self._values = torch.zeros(sum(sizes) + 2, dtype=torch.float64, device=self._device)
        *parts, self._count, self._left_early = torch.split(self._values, [*sizes, 1, 1])
        self._parts = [
            part.view((samples, *quantity.shape) if quantity.is_gathered else quantity.shape)
            for quantity, part in zip(quantities, parts, strict=True)
        ]
        self._seen = 0

    def add(self, measured: dict[str, torch.Tensor]) -> None:
        """Take the values of this rank's next samples in."""
        taken = len(measured[self._quantities[0].name])
        # As ShardSampler deals them out: sample i of rank r is number r + i·W of the data set.
        first, stride = self._group.rank + self._seen * self._group.world_size, self._group.world_size
        for quantity, part in zip(self._quantities, self._parts, strict=True):
            values = measured[quantity.name].to(self._device, torch.float64)
            if quantity.is_gathered:
                part[first : first + taken * stride : stride] = values
            else:
                part.add_(values.sum(dim=0))
        self._count += taken
        self._seen += taken

    def leave_early(self) -> None:
        self._left_early += 1

    def sum_over_ranks(self) -> bool:
        """Add up what all ranks have; return whether none of them left early."""
        self._group.sum(self._values)
        return int(self._left_early.item()) == 0

    @property
    def count(self) -> int:
        return int(self._count.item())

    def by_quantity(self) -> dict[str, torch.Tensor]:
        return {quantity.name: part.cpu() for quantity, part in zip(self._quantities, self._parts, strict=True)}
