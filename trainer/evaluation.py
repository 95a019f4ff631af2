"""Evaluation: every validation sample counted exactly once, by whichever rank."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader

from trainer.data.loading import on_device
from trainer.process_group import ProcessGroup
from trainer.recipes.recipe import Recipe


def evaluate(
    model: nn.Module,
    loader: DataLoader[Any],
    *,
    recipe: Recipe,
    quantities: Sequence[str],
    group: ProcessGroup,
    autocast: Callable[[], AbstractContextManager[object]],
    stop_requested: Callable[[], bool],
    alive: Callable[[], None],
) -> dict[str, float] | None:
    """Return the recipe's metrics over all ranks' shares together, or None on every rank if any was asked to stop.

    `model` is the bare model, not DDP's wrapper: shares differ in length, so no collective may be in the forward pass.
    The only one is the sum at the end, which also carries whether a rank was asked to stop and left early; so no rank
    waits for one that has gone.
    """
    group.align_buffers(model)
    sum_device = torch.device("cpu") if group.device.type == "mps" else group.device  # MPS has no float64
    # The quantities, then the number of samples, then the number of ranks that left early.
    totals = torch.zeros(len(quantities) + 2, dtype=torch.float64, device=sum_device)
    model.eval()
    with torch.inference_mode():
        for batch in loader:
            if stop_requested():
                totals[-1] = 1
                break
            with autocast():
                measured = recipe.measure(model, on_device(batch, group.device))
            sums = [measured[name].to(sum_device, torch.float64).sum() for name in quantities]
            totals[:-1] += torch.stack([*sums, torch.full_like(sums[0], len(measured[quantities[0]]))])
            alive()
    model.train()
    *sums_of_all, count, left_early = group.sum(totals).tolist()
    if left_early:
        return None
    return recipe.summarize(dict(zip(quantities, sums_of_all, strict=True)), int(count))
