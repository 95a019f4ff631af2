"""Detectors: torchvision's, with the loss of a batch made the mean of its images' losses.

torchvision divides by counts over the whole batch (of foreground anchors in FCOS and SSD, of sampled boxes in Faster
R-CNN), so that what an image weighs depends on which others share its batch, and with it on the number of ranks. Here
each image is normalised by its own counts, as RetinaNet's is in torchvision already. What Faster R-CNN samples at
random is drawn from each image's own seed. Names and shapes of the weights are torchvision's.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
import torchvision.models
from torch import nn
from torchvision.models.detection import FCOS, FasterRCNN, RetinaNet
from torchvision.models.detection.roi_heads import RoIHeads, fastrcnn_loss
from torchvision.models.detection.rpn import RegionProposalNetwork
from torchvision.models.detection.ssd import SSD
from torchvision.models.detection.transform import GeneralizedRCNNTransform

from trainer.errors import ConfigError
from trainer.precision import in_float32_or_more

Target = Mapping[str, Any]
"""One image's objects: `boxes` [objects, 4], `labels` [objects] from 1 on, and in training `seed`."""


def detector_names() -> list[str]:
    """Return the names of torchvision's detectors that find boxes alone."""
    names: list[str] = torchvision.models.list_models(module=torchvision.models.detection)
    return [name for name in names if not name.startswith(("maskrcnn", "keypointrcnn"))]


def build_detector(name: str, *, num_classes: int) -> nn.Module:
    """Return a fresh detector for square images that have their size already; `num_classes` counts the background."""
    model: nn.Module = torchvision.models.get_model(name, weights=None, weights_backbone=None, num_classes=num_classes)
    return over_images(model)


def over_images(model: nn.Module) -> nn.Module:
    """Let one of torchvision's detectors take the mean of its images' losses; returns it.

    Its layers change their class and no weight, so that those of torchvision's own fit. From then on it takes images
    in the size that they have, and Faster R-CNN needs a `seed` in each training target. Raises ConfigError for a model
    that is none of torchvision's.
    """
    kind = _MEAN_OVER_IMAGES.get(type(model))
    if kind is None:
        known = ", ".join(each.__name__ for each in _MEAN_OVER_IMAGES)
        raise ConfigError(f"model: {type(model).__qualname__} is none of torchvision's detectors ({known})")
    model.__class__ = kind
    assert isinstance(model.transform, GeneralizedRCNNTransform)
    model.transform.__class__ = SameSize
    if isinstance(model, FasterRCNNOverImages):
        model.rpn.__class__ = ProposalsOverImages
        model.roi_heads.__class__ = RegionsOverImages
        for part in (model.rpn, model.roi_heads):
            own = part.fg_bg_sampler
            part.fg_bg_sampler = SeededSampler(own.batch_size_per_image, own.positive_fraction)
        heads = [model.rpn.head, model.roi_heads.box_predictor]
    else:
        heads = [model.head]
    for head in heads:
        assert isinstance(head, nn.Module)
        head.register_forward_hook(_outputs_in_float32)
    return model


class SameSize(GeneralizedRCNNTransform):
    """Normalises and pads images as the detector is used to, and leaves them the size that they come in."""

    def resize(self, image: torch.Tensor, target: Any = None) -> tuple[torch.Tensor, Any]:
        """Return image and target as they are."""
        return image, target


class FCOSOverImages(FCOS):
    """FCOS (Tian et al., 2019)."""

    def compute_loss(
        self,
        targets: Sequence[Target],
        head_outputs: Mapping[str, torch.Tensor],
        anchors: Sequence[torch.Tensor],
        num_anchors_per_level: list[int],
    ) -> dict[str, torch.Tensor]:
        """Return the mean of the images' losses, by part."""
        one = super().compute_loss
        return _mean(
            one([target], _of_image(head_outputs, index), [anchors[index]], num_anchors_per_level)
            for index, target in enumerate(targets)
        )


class SSDOverImages(SSD):
    """SSD (Liu et al., 2016), and SSDlite (Sandler et al., 2018)."""

    def compute_loss(
        self,
        targets: Sequence[Target],
        head_outputs: Mapping[str, torch.Tensor],
        anchors: Sequence[torch.Tensor],
        matched_idxs: Sequence[torch.Tensor],
    ) -> dict[str, torch.Tensor]:
        """Return the mean of the images' losses, by part."""
        one = super().compute_loss
        return _mean(
            one([target], _of_image(head_outputs, index), [anchors[index]], [matched_idxs[index]])
            for index, target in enumerate(targets)
        )


class FasterRCNNOverImages(FasterRCNN):
    """Faster R-CNN (Ren et al., 2015)."""

    def forward(self, images: torch.Tensor, targets: Sequence[Target] | None = None) -> Any:
        """Return the losses of [images, 3, S, S] in training, and else each image's detections."""
        if self.training and targets is not None:
            generators = [torch.Generator().manual_seed(target["seed"]) for target in targets]
            self.rpn.fg_bg_sampler.generators = iter(generators)
            self.roi_heads.fg_bg_sampler.generators = iter(generators)
        return super().forward(images, targets)


class ProposalsOverImages(RegionProposalNetwork):
    """The region proposal network of Faster R-CNN."""

    def compute_loss(
        self,
        objectness: torch.Tensor,
        pred_bbox_deltas: torch.Tensor,
        labels: Sequence[torch.Tensor],
        regression_targets: Sequence[torch.Tensor],
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the mean of the images' losses: of objectness and of the boxes."""
        anchors = [len(of_image) for of_image in labels]
        one = super().compute_loss
        losses = [
            torch.stack(one(scores, deltas, [of_anchors.to(scores.dtype)], [boxes]))
            for scores, deltas, of_anchors, boxes in zip(
                torch.split(objectness, anchors),
                torch.split(pred_bbox_deltas, anchors),
                labels,
                regression_targets,
                strict=True,
            )
        ]
        of_objectness, of_boxes = torch.stack(losses).mean(dim=0)
        return of_objectness, of_boxes


class RegionsOverImages(RoIHeads):
    """The heads of Faster R-CNN that classify and refine the proposed regions."""

    def forward(
        self,
        features: Mapping[str, torch.Tensor],
        proposals: list[torch.Tensor],
        image_shapes: list[tuple[int, int]],
        targets: list[Target] | None = None,
    ) -> tuple[list[dict[str, torch.Tensor]], dict[str, torch.Tensor]]:
        """Return no detections and the mean of the images' losses in training, and else detections and no losses."""
        if not self.training:
            detections, losses = super().forward(features, proposals, image_shapes, targets)
            return detections, losses
        proposals, _, labels, regression_targets = self.select_training_samples(proposals, targets)
        # All regions at once: the box head may have BatchNorm, which all ranks have to come by equally often.
        pooled = self.box_head(self.box_roi_pool(features, proposals, image_shapes))
        logits, deltas = self.box_predictor(pooled)
        regions = [len(of_image) for of_image in labels]
        losses = [
            # Of no proposal and no object, the mean would be no number.
            torch.stack(
                fastrcnn_loss(scores, boxes, [classes], [offsets]) if len(classes) else (scores.sum(), boxes.sum())
            )
            for scores, boxes, classes, offsets in zip(
                logits.split(regions), deltas.split(regions), labels, regression_targets, strict=True
            )
        ]
        of_classes, of_boxes = torch.stack(losses).mean(dim=0)
        return [], {"loss_classifier": of_classes, "loss_box_reg": of_boxes}


class SeededSampler:
    """Samples each image's anchors or regions with that image's own generator, which has it the same on any device."""

    def __init__(self, batch_size_per_image: int, positive_fraction: float) -> None:
        self.batch_size_per_image, self.positive_fraction = batch_size_per_image, positive_fraction
        self.generators: Iterator[torch.Generator] = iter(())
        """One for each image to come; they draw on the CPU."""

    def __call__(self, labels: Sequence[torch.Tensor]) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """Return for each image which of its labels are sampled as positives (1 and more) and as negatives (0).

        As in torchvision, negatives fill up what the positives leave of `batch_size_per_image`.
        """
        positives, negatives = [], []
        for of_image in labels:
            generator = next(self.generators)
            most = int(self.batch_size_per_image * self.positive_fraction)
            positive = _sample(of_image >= 1, most, generator)
            taken = min(most, int((of_image >= 1).sum()))
            positives.append(positive)
            negatives.append(_sample(of_image == 0, self.batch_size_per_image - taken, generator))
        return positives, negatives


def _sample(candidates: torch.Tensor, most: int, generator: torch.Generator) -> torch.Tensor:
    """Return which of the candidates, a mask, are among at most `most` of them drawn at random."""
    (places,) = torch.where(candidates)
    drawn = torch.randperm(len(places), generator=generator)[:most]
    sampled = torch.zeros_like(candidates)
    sampled[places[drawn.to(places.device)]] = True
    return sampled


_MEAN_OVER_IMAGES: dict[type[nn.Module], type[nn.Module]] = {
    FCOS: FCOSOverImages,
    SSD: SSDOverImages,
    RetinaNet: RetinaNet,  # (Lin et al., 2017) averages over images in torchvision already
    FasterRCNN: FasterRCNNOverImages,
}


def _outputs_in_float32(_head: nn.Module, _inputs: Any, outputs: Any) -> Any:
    """Turn what a head says under autocast into float32: boxes are made of it, and bfloat16 knows 300 pixels to 2."""
    if isinstance(outputs, torch.Tensor):
        return in_float32_or_more(outputs)
    if isinstance(outputs, dict):
        return {name: _outputs_in_float32(_head, _inputs, output) for name, output in outputs.items()}
    return type(outputs)(_outputs_in_float32(_head, _inputs, output) for output in outputs)


def _of_image(outputs: Mapping[str, torch.Tensor], index: int) -> dict[str, torch.Tensor]:
    return {name: output[index : index + 1] for name, output in outputs.items()}


def _mean(losses: Iterator[dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    """Return the mean of several images' losses, part by part."""
    images = list(losses)
    return {name: torch.stack([of_image[name] for of_image in images]).mean() for name in images[0]}
