"""What a run is made of, on one rank: weights to begin with, frozen parts, and what is left to train."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torchvision.models import get_model

from tests.distributed.runs import draw_images, prepare
from trainer.assembly import Assembly, assemble
from trainer.process_group import ProcessGroup
from trainer.run_dir import RunDir


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return draw_images(tmp_path_factory.mktemp("images"), train=9, val=2)


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    """A ResNet-18 of a thousand classes."""
    torch.manual_seed(5)
    torch.save(get_model("resnet18", weights=None).state_dict(), tmp_path / "weights.pt")
    return tmp_path / "weights.pt"


def assembled(run_dir: RunDir, *, is_continued: bool = False, micro_batches: int = 1) -> Assembly:
    group = ProcessGroup.alone(torch.device("cpu"))
    config = run_dir.read_config().model_copy(update={"micro_batches": micro_batches})
    return assemble(run_dir, config, group, is_continued=is_continued, batch=None)


def test_a_run_begins_with_the_weights_named_trains_the_parts_left_and_says_what_is_fresh(
    tmp_path: Path, images: Path, weights: Path
) -> None:
    options: dict[str, Any] = {"model": "resnet18", "dropout": None, "batch": 4, "weights": str(weights)}
    run_dir = prepare(tmp_path / "run", data=images, ranks=1, freeze=["conv1", "bn1", "layer1"], **options)
    parts = assembled(run_dir)
    theirs = torch.load(weights, weights_only=True)
    assert torch.equal(parts.model.get_parameter("layer1.0.conv1.weight"), theirs["layer1.0.conv1.weight"])
    assert any("fc.weight, fc.bias stay fresh" in text for text in parts.warnings)
    frozen = {name.split(".")[0] for name, part in parts.model.named_parameters() if not part.requires_grad}
    assert frozen == {"conv1", "bn1", "layer1"}
    optimized = {id(part) for group in parts.optimizer.param_groups for part in group["params"]}
    assert optimized == {id(part) for part in parts.model.parameters() if part.requires_grad}
    # The other BatchNorm layers still need two samples: the ninth is left out.
    assert parts.sampler.dropped_samples == 1


def test_a_model_whose_every_batchnorm_is_frozen_leaves_no_sample_out(tmp_path: Path, images: Path) -> None:
    frozen = ["bn1", "layer1", "layer2", "layer3", "layer4"]
    options: dict[str, Any] = {"model": "resnet18", "dropout": None, "batch": 4, "freeze": frozen}
    parts = assembled(prepare(tmp_path / "run", data=images, ranks=1, **options))
    assert parts.sampler.dropped_samples == 0


@pytest.mark.parametrize("batch", [2, 4, 6])
def test_a_run_in_parts_leaves_out_the_samples_that_the_whole_batches_leave_out(
    tmp_path: Path, images: Path, batch: int
) -> None:
    run_dir = prepare(tmp_path / "run", data=images, ranks=1, model="resnet18", dropout=None, batch=batch)
    whole, cut = assembled(run_dir), assembled(run_dir, micro_batches=2)
    assert cut.sampler.dropped_samples == whole.sampler.dropped_samples == (0 if batch == 6 else 1)
    assert cut.sampler.steps_per_epoch == whole.sampler.steps_per_epoch
    assert [len(labels) for _, labels in map(cut.data.prepare_train, cut.loader)] == {
        2: [1] * 8,
        4: [2] * 4,
        6: [3] * 3,
    }[batch]


def test_a_continued_run_does_not_look_at_the_weights_it_began_with(
    tmp_path: Path, images: Path, weights: Path
) -> None:
    run_dir = prepare(tmp_path / "run", data=images, ranks=1, batch=4, weights=str(weights))
    weights.unlink()
    assert not any("weights:" in text for text in assembled(run_dir, is_continued=True).warnings)
