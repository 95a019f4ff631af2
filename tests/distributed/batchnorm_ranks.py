"""BatchNorm models on one process or as one of several ranks, which is what this module is when it is run."""

import sys
import warnings
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torchvision.models
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from trainer.parent_death import die_with_parent
from trainer.sync_batchnorm import count_batch, synchronize_batchnorm

RANKS = 3
STEPS = (4, 6, 2)
"""Samples in each step's global batch: on three ranks 2+1+1, 2+2+2, and 1+1 with a rank that only repeats a sample."""


class Mixed(nn.Module):
    """BatchNorm behind a learned mixture of channels, so that what flows through its input into weights is seen."""

    def __init__(self, layer: nn.Module, channels: int, *, twice: bool = False, frozen: bool = False) -> None:
        super().__init__()
        self.mixture = nn.Parameter(torch.eye(channels, dtype=torch.float64) + 0.1)
        self.layer, self.twice, self.frozen = layer, twice, frozen

    def train(self, mode: bool = True) -> "Mixed":
        super().train(mode)
        if self.frozen:
            self.layer.eval()
        return self

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        mixed = torch.einsum("oc,nc...->no...", self.mixture, values.double())  # what is rounded here is BatchNorm
        values = self.layer(mixed.to(values.dtype))
        result: torch.Tensor = self.layer(values.tanh()) if self.twice else values
        return result


@dataclass(frozen=True)
class Case:
    """One layer, its inputs, and how far one process and several ranks may be apart."""

    kind: type[nn.Module]
    shape: tuple[int, ...]
    """Of one sample."""
    dtype: torch.dtype = torch.float32
    tolerance: float = 1e-6
    """Of the statistics: absolute, and relative to the largest of them."""
    rounding: float = 1e-6
    """Of outputs and gradients, likewise."""
    layer: dict[str, Any] = field(default_factory=dict)
    model: dict[str, Any] = field(default_factory=dict)
    affine_trains: bool = True

    def build(self) -> nn.Module:
        layer = self.kind(self.shape[0], **self.layer).to(torch.promote_types(self.dtype, torch.float32))
        for number, parameter in enumerate(layer.parameters()):
            nn.init.uniform_(parameter, number, number + 1, generator=torch.Generator().manual_seed(number))
            parameter.requires_grad_(self.affine_trains)
        return Mixed(layer, self.shape[0], **self.model)

    def batch(self, step: int) -> torch.Tensor:
        """The global batch of a step: shape [samples, *shape]."""
        generator = torch.Generator().manual_seed(step)
        return (torch.randn((STEPS[step], *self.shape), generator=generator) * 2).to(self.dtype)


CASES = {
    f"{name}, {'float64' if dtype is torch.float64 else 'float32'}": Case(kind, shape, dtype, tolerance, tolerance)
    for name, kind, shape in (
        ("1d without length", nn.BatchNorm1d, (5,)),
        ("1d", nn.BatchNorm1d, (5, 4)),
        ("2d", nn.BatchNorm2d, (5, 3, 4)),
        ("3d", nn.BatchNorm3d, (5, 2, 3, 2)),
    )
    for dtype, tolerance in ((torch.float32, 1e-6), (torch.float64, 1e-12))
} | {
    "cumulative average": Case(nn.BatchNorm2d, (5, 3, 4), layer={"momentum": None}),
    "no weights": Case(nn.BatchNorm2d, (5, 3, 4), layer={"affine": False}),
    "no running statistics": Case(nn.BatchNorm2d, (5, 3, 4), layer={"track_running_stats": False}),
    "weights that do not train": Case(nn.BatchNorm2d, (5, 3, 4), affine_trains=False),
    "used twice": Case(nn.BatchNorm2d, (5, 3, 4), torch.float64, 1e-12, 1e-12, model={"twice": True}),
    "frozen": Case(nn.BatchNorm2d, (5, 3, 4), model={"frozen": True}),
    "bfloat16": Case(nn.BatchNorm2d, (5, 3, 4), torch.bfloat16, tolerance=1e-2, rounding=5e-2),
}


def train(case: Case, *, rank: int = 0, ranks: int = 1) -> dict[str, Any]:
    """Take three steps as a run takes them, and return what came of each on this rank, and the state at the end."""
    model = case.build().train()
    replica = model
    if ranks > 1:
        synchronize_batchnorm(model, device=torch.device("cpu"), has_idle_ranks=True)
        replica = DistributedDataParallel(model)
    optimizer = torch.optim.SGD((parameter for parameter in model.parameters() if parameter.requires_grad), lr=0.5)
    steps = []
    for step, size in enumerate(STEPS):
        batch = case.batch(step)
        local_size = len(range(rank, size, ranks))
        values = (batch[rank::ranks] if local_size else batch[:1]).clone().requires_grad_()
        count_batch(model, local_size > 0)
        output = replica(values)
        loss = output.double().sin().flatten(1).mean(1).mean() * (local_size * ranks / size)
        optimizer.zero_grad()
        loss.backward()
        assert values.grad is not None
        steps.append(
            {
                "output": output.detach()[:local_size],
                # Of the sum of the ranks' losses, which is `ranks` times the mean over the global batch.
                "input": values.grad[:local_size] / ranks,
                **{f"gradient of {name}": p.grad for name, p in model.named_parameters() if p.grad is not None},
                **{name: buffer.clone() for name, buffer in model.named_buffers()},
            }
        )
        optimizer.step()
    model.eval()
    evaluated = model(case.batch(0)).detach()
    return {"steps": steps, "state": model.state_dict(), "evaluated": evaluated}


def resnet(*, rank: int = 0, ranks: int = 1) -> dict[str, Any]:
    """One forward and backward pass of a whole network on 9 images.

    In double precision: in single, rounding that turns one ReLU off is seen in the gradients, with any two kernels.
    """
    torch.manual_seed(0)
    images, labels = torch.randn(9, 3, 64, 64, dtype=torch.float64), torch.arange(9) % 4
    model = torchvision.models.resnet18(num_classes=4).double()
    replica: nn.Module = model
    if ranks > 1:
        synchronize_batchnorm(model, device=torch.device("cpu"), has_idle_ranks=False)
        replica = DistributedDataParallel(model)
    logits = replica(images[rank::ranks])
    nn.functional.cross_entropy(logits, labels[rank::ranks]).backward()  # type: ignore[no-untyped-call]  # torch's own is untyped
    gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
    return {"logits": logits.detach(), "gradients": gradients, "buffers": dict(model.named_buffers())}


def lone_values(rank: int) -> dict[str, Any]:
    """What a rank gets where a channel has one value over all ranks, and where some ranks have no samples at all."""
    layer = nn.BatchNorm1d(2)
    synchronize_batchnorm(layer, device=torch.device("cpu"), has_idle_ranks=True)
    count_batch(layer, rank == 0)
    try:
        layer(torch.ones(1, 2))
        refused = ""
    except ValueError as error:
        refused = str(error)
    layer = nn.BatchNorm1d(2)
    synchronize_batchnorm(layer, device=torch.device("cpu"), has_idle_ranks=True)
    values = torch.arange(8.0).view(4, 2)[: 4 if rank == 1 else 0].requires_grad_()
    output = layer(values)
    output.sin().sum().backward()
    return {"refused": refused, "output": output.detach(), "input": values.grad, "var": layer.running_var}


def large_mean(*, rank: int = 0, ranks: int = 1, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """The running variance after one batch whose mean is a thousand times its deviation."""
    batch = torch.randn((6, 2, 5), generator=torch.Generator().manual_seed(0)) + 1000
    layer = nn.BatchNorm1d(2, momentum=1).to(dtype)
    if ranks > 1:
        synchronize_batchnorm(layer, device=torch.device("cpu"), has_idle_ranks=False)
    layer(batch[rank::ranks].to(dtype))
    assert layer.running_var is not None
    return layer.running_var


def autocast() -> torch.Tensor:
    """What a convolution's bfloat16 becomes."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2))
    synchronize_batchnorm(model, device=torch.device("cpu"), has_idle_ranks=False)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output: torch.Tensor = model(torch.randn(2, 1, 8, 8))
    output.float().sum().backward()  # type: ignore[no-untyped-call]  # torch's own backward is untyped
    return output.detach()


def _main(rank: int, ranks: int, folder: Path) -> None:
    die_with_parent()
    warnings.simplefilter("error")
    store = dist.FileStore(str(folder / "store"), ranks)  # type: ignore[attr-defined]  # exported where there is one
    dist.init_process_group("gloo", store=store, rank=rank, world_size=ranks, timeout=timedelta(seconds=60))
    results: dict[str, Any] = {name: train(case, rank=rank, ranks=ranks) for name, case in CASES.items()}
    results |= {"resnet": resnet(rank=rank, ranks=ranks), "lone": lone_values(rank), "autocast": autocast()}
    results["large mean"] = large_mean(rank=rank, ranks=ranks)
    torch.save(results, folder / f"{rank}.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    _main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
