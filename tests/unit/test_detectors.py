"""Detectors: the loss of a batch is the mean of its images', whatever the model, and draws are each image's own."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torchvision.models.detection import FCOS, FasterRCNN, RetinaNet
from torchvision.models.detection.anchor_utils import AnchorGenerator, DefaultBoxGenerator
from torchvision.models.detection.ssd import SSD
from torchvision.ops import MultiScaleRoIAlign

from trainer.double_precision import in_double
from trainer.errors import ConfigError
from trainer.recipes.detectors import build_detector, detector_names, over_images

SIZE = 64


def targets() -> list[dict[str, Any]]:
    """One image with two objects, one with a single one, one with none."""
    return [
        {"boxes": torch.tensor([[4.0, 6, 40, 44], [30, 30, 62, 60]]), "labels": torch.tensor([1, 2]), "seed": 1},
        {"boxes": torch.tensor([[10.0, 10, 50, 54]]), "labels": torch.tensor([2]), "seed": 2},
        {"boxes": torch.zeros(0, 4), "labels": torch.zeros(0, dtype=torch.int64), "seed": 3},
    ]


def images(count: int = 3) -> torch.Tensor:
    return torch.rand(count, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(0))


class Backbone(nn.Module):
    """Features of one level, 8 pixels apart."""

    def __init__(self) -> None:
        super().__init__()
        self.out_channels: Any = 32
        self.layer = nn.Conv2d(3, 32, 8, stride=8)

    def forward(self, images: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"0": self.layer(images).relu()}


def one_of_each_family() -> dict[str, Callable[[], nn.Module]]:
    square, several = AnchorGenerator(((8,),), ((1.0,),)), AnchorGenerator(((16, 32),), ((1.0,),))
    backbone = Backbone()
    listing = Backbone()
    listing.out_channels = [32]
    return {
        "FCOS": lambda: FCOS(backbone, num_classes=3, anchor_generator=square),
        "RetinaNet": lambda: RetinaNet(backbone, num_classes=3, anchor_generator=several),
        "SSD": lambda: SSD(listing, DefaultBoxGenerator([[2]], scales=[0.3, 0.6]), (SIZE, SIZE), num_classes=3),
        "Faster R-CNN": lambda: FasterRCNN(
            backbone, num_classes=3, rpn_anchor_generator=several, box_roi_pool=MultiScaleRoIAlign(["0"], 3, 2)
        ),
    }


def build(family: str) -> nn.Module:
    """A small detector in float64, without BatchNorm: with it, images depend on each other."""
    torch.manual_seed(0)
    return in_double(over_images(one_of_each_family()[family]()))


def gradients(model: nn.Module, images: torch.Tensor, targets: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
    model.zero_grad()
    torch.autograd.backward(torch.stack(list(model(images, targets).values())).sum())
    return {name: parameter.grad.clone() for name, parameter in model.named_parameters() if parameter.grad is not None}


@pytest.mark.parametrize("family", one_of_each_family())
def test_the_gradients_of_a_batch_are_the_mean_of_its_images_gradients(family: str) -> None:
    model = build(family)
    batch = gradients(model, images(), targets())
    assert set(batch) == {name for name, _ in model.named_parameters()}  # DDP would wait for any that is missing
    torch.manual_seed(1)  # whatever else is drawn has no part in it
    singly = [gradients(model, images()[index : index + 1], targets()[index : index + 1]) for index in range(3)]
    largest = max(gradient.abs().max().item() for gradient in batch.values())
    assert largest > 1e-3
    for parameter, gradient in batch.items():
        mean = torch.stack([of_image[parameter] for of_image in singly]).mean(dim=0)
        torch.testing.assert_close(gradient, mean, rtol=1e-9, atol=1e-12 * largest, msg=parameter)


def test_faster_rcnn_samples_by_each_images_seed() -> None:
    model = build("Faster R-CNN")
    model.rpn.fg_bg_sampler.batch_size_per_image = 8  # type: ignore[union-attr]  # torch types submodules loosely
    first = gradients(model, images(1), targets()[:1])
    torch.manual_seed(7)
    again = gradients(model, images(1), targets()[:1])
    other = gradients(model, images(1), [targets()[0] | {"seed": 9}])
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not all(torch.equal(first[name], other[name]) for name in first)


def test_every_detector_is_built_with_torchvisions_names_and_can_be_copied_and_pickled() -> None:
    import torchvision.models

    names = detector_names()
    assert {"ssd300_vgg16", "fasterrcnn_resnet50_fpn_v2", "retinanet_resnet50_fpn_v2"} <= set(names)
    assert not [name for name in names if "mask" in name or "keypoint" in name]
    for name in names:
        with torch.device("meta"):
            theirs = torchvision.models.get_model(name, weights=None, weights_backbone=None, num_classes=3)
            ours = build_detector(name, num_classes=3)
        assert ours.state_dict().keys() == theirs.state_dict().keys()
        copy.deepcopy(ours)
        assert type(pickle.loads(pickle.dumps(ours))) is type(ours)  # noqa: S301  (our own bytes)


def test_images_keep_the_size_that_they_come_in() -> None:
    model = build_detector("ssdlite320_mobilenet_v3_large", num_classes=3).eval()
    model.score_thresh = 0.0  # type: ignore[assignment]  # torch types attributes of a module loosely
    with torch.no_grad():
        (found,) = model(torch.rand(1, 3, 96, 96))
    assert found["boxes"].max() <= 96
    assert found["boxes"].max() > 64  # a resize to its own 320 pixels and back would be slower, not other boxes
    seen: list[torch.Size] = []
    model.backbone.register_forward_hook(lambda _layer, inputs, _output: seen.append(inputs[0].shape))  # type: ignore[union-attr]  # as above
    model(torch.rand(1, 3, 96, 96))
    assert seen == [torch.Size([1, 3, 96, 96])]


@pytest.mark.parametrize("family", one_of_each_family())
def test_mixed_precision_rounds_no_box(family: str) -> None:
    model = over_images(one_of_each_family()[family]())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        losses = model(images(), targets())
        with torch.no_grad():
            found = model.eval()(images())
    assert {loss.dtype for loss in losses.values()} == {torch.float32}
    assert {of_image["boxes"].dtype for of_image in found} == {torch.float32}


def test_what_is_no_detector_of_torchvisions_is_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"Backbone is none of torchvision's detectors \(FCOS, SSD, RetinaNet, FasterRCNN\)"
    ):
        over_images(Backbone())
