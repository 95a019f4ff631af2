"""The CUDA graph: where it is used, and that what it replays is what would have been computed without it."""

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import Dataset, default_collate

from tests.distributed.runs import draw_images, largest_difference
from trainer.assembly import assemble
from trainer.autobatch import left_as_it_was
from trainer.caller import Call, calling
from trainer.config import TrainConfig
from trainer.cuda_graph import GraphedComputation, Record, Replay, is_recordable, record_on_cuda, why_eager
from trainer.loss_watch import LossWatch
from trainer.process_group import ProcessGroup
from trainer.recipes import detection
from trainer.recipes.recipe import TaskData
from trainer.run_dir import RunConfig, RunDir
from trainer.stepping import Stepper

STEPS = 20


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """At batch 4, four batches an epoch of which the last has three images."""
    return draw_images(tmp_path_factory.mktemp("images"), train=15, val=2)


def config(**options: Any) -> TrainConfig:
    return TrainConfig.model_validate({"model": "mine", "data": "drawn", "cuda_graph": True} | options)


def network() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(4, 2),
    )  # fmt: skip


def why(
    device: str,
    *,
    is_distributed: bool = False,
    devices: int = 1,
    accumulate: int = 1,
    recordable: bool = True,
    **options: Any,
) -> str | None:
    return why_eager(
        config(**options),
        torch.device(device),
        is_distributed=is_distributed,
        devices=devices,
        accumulate=accumulate,
        is_recordable=lambda: recordable,
    )


def test_a_graph_is_used_on_one_cuda_device_alone_and_else_the_reason_is_told() -> None:
    assert why("cuda") is None
    assert why("cuda", amp="bf16", channels_last=True) is None
    assert why("cpu", cuda_graph=False) is None
    for reason, told in {
        "this is cpu": why("cpu"),
        "several ranks": why("cuda", is_distributed=True),
        "strategy dp": why("cuda", devices=2),
        "accumulates 2 batches": why("cuda", accumulate=2),
        "fp16": why("cuda", amp="fp16"),
        "compile": why("cuda", compile=True),
        "more than tensors": why("cuda", recordable=False),
    }.items():
        assert told is not None
        assert told.startswith("cuda_graph: without effect here, training goes on without")
        assert reason in told


@pytest.mark.parametrize(
    ("collate", "prepare", "expected"),
    [(detection._collate, detection._prepare, False), (default_collate, lambda batch: batch, True)],
    ids=["detection", "images and labels"],
)
def test_a_graph_records_what_a_step_takes_only_where_that_is_tensors_alone(
    collate: Any, prepare: Any, expected: bool
) -> None:
    boxes = {"boxes": torch.zeros(1, 4), "labels": torch.ones(1), "seed": 3}

    class Drawn(Dataset[Any]):
        def __len__(self) -> int:
            return 1

        def __getitem__(self, index: int) -> Any:
            image = torch.randint(256, (3, 8, 8), dtype=torch.uint8)
            return (image, 1) if expected else {"image": image, "target": boxes}

    data = TaskData(Drawn(), Drawn(), "1 sample", collate=collate, prepare_train=prepare)
    model, before = network(), torch.get_rng_state()
    assert is_recordable(data, model, config()) is expected
    assert torch.equal(torch.get_rng_state(), before)


def replaying_by_computing(recorded: list[int]) -> Record:
    """What stands in for CUDA: it computes anew, into the tensors that the recording left, at each replay."""

    def record(compute: Any, model: nn.Module) -> tuple[torch.Tensor, Replay]:
        recorded.append(0)
        with left_as_it_was(model, torch.device("cpu")):
            loss = compute()
            gradients = [parameter.grad for parameter in model.parameters()]
        for parameter, gradient in zip(model.parameters(), gradients, strict=True):
            parameter.grad = gradient

        def replay() -> None:
            recorded[-1] += 1
            model.zero_grad(set_to_none=True)
            loss.copy_(compute())
            for parameter, gradient in zip(model.parameters(), gradients, strict=True):
                assert gradient is not None
                assert parameter.grad is not None
                gradient.copy_(parameter.grad)
                parameter.grad = None

        return loss, replay

    return record


def train(
    images: Path, folder: Path, device: torch.device, record: Record | None
) -> tuple[dict[str, Any], list[float]]:
    """Train some steps, over an uneven last batch and with dropout; return the state and each step's loss."""
    run = RunConfig(
        train=config(data=str(images), batch=4, image_size=16, lr=0.05, num_workers=0, epochs=5, ema=0.9),
        devices=(str(device),),
        call=True,
    )
    group = ProcessGroup.alone(device)
    with calling(Call(network(), ())):
        parts = assemble(RunDir(folder), run, group, is_continued=False, batch=None)
    parts = replace(parts, uses_cuda_graph=False)
    stepper = Stepper(parts, parts.model, group, LossWatch(device, rank=0), rehearses=False)
    if record is not None:
        stepper.graphed = GraphedComputation(parts.model, stepper._gradients, record=record)
    losses = []
    for step in range(STEPS):
        epoch, step_in_epoch = divmod(step, parts.sampler.steps_per_epoch)
        if step_in_epoch == 0:
            parts.sampler.start_at(epoch, 0)
            batches = iter(parts.loader)
        taken = stepper.take(batches, epoch=epoch, step_in_epoch=step_in_epoch, step=step)
        losses.append(taken.loss.item())
    return copy.deepcopy(parts.model.state_dict()), losses


def test_full_batches_are_replayed_and_others_computed_with_the_same_weights_in_the_end(
    images: Path, tmp_path: Path
) -> None:
    device, recorded = torch.device("cpu"), list[int]()
    eager, eager_losses = train(images, tmp_path, device, None)
    graphed, losses = train(images, tmp_path, device, replaying_by_computing(recorded))
    assert recorded == [STEPS * 3 // 4]
    assert losses == eager_losses
    assert largest_difference(eager, graphed) == 0


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU: records and replays a CUDA graph")
def test_on_a_gpu_steps_by_a_graph_leave_the_same_weights_as_steps_without(images: Path, tmp_path: Path) -> None:
    device = torch.device("cuda", 0)
    eager, eager_losses = train(images, tmp_path, device, None)
    graphed, losses = train(images, tmp_path, device, record_on_cuda)
    assert losses == pytest.approx(eager_losses, rel=1e-3)
    assert largest_difference(eager, graphed) < 1e-3


def test_a_batch_that_holds_more_than_tensors_is_computed_without_a_graph() -> None:
    model = nn.Linear(2, 1)
    seen = []

    def compute(batch: Any) -> torch.Tensor:
        seen.append(batch)
        return torch.zeros(())

    recorded: list[int] = []
    graphed = GraphedComputation(model, compute, record=replaying_by_computing(recorded))
    for batch in ((torch.ones(3, 2), "a"), {"images": [torch.ones(3, 2)], "number": 4}):
        graphed(batch, is_full=True)
        assert seen[-1] is batch
    assert recorded == []
