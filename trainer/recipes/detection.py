"""The recipe `detection`: torchvision's detectors, which find the boxes of objects and say of which class each is."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.utils.data import Dataset

from trainer.config import TrainConfig
from trainer.data.decoded import ImageSource
from trainer.data.scene_data import open_scene_data
from trainer.data.scenes import Scene
from trainer.errors import ConfigError
from trainer.process_group import ProcessGroup
from trainer.recipes.average_precision import MOST_DETECTIONS, average_precision
from trainer.recipes.batchnorm import set_momentum
from trainer.recipes.classifiers import set_dropout
from trainer.recipes.detectors import build_detector, detector_names
from trainer.recipes.model_checks import outputs_of, refuse_unknown_model
from trainer.recipes.own_options import DetectionOptions
from trainer.recipes.recipe import Evaluation, Quantity, TaskData, options_of

_OWN_SIZE = {"ssd300_vgg16": 300}
"""Detectors whose boxes are laid out for one size of image, in pixels."""


class Detection:
    """Boxes with classes; the detector's own loss; COCO's average precision.

    torchvision's detectors have no loss in evaluation. Of equal precisions the better is therefore that which misses
    fewer objects.
    """

    name = "detection"
    description = "Object detection with torchvision's models, on data laid out as VOC, COCO or YOLO has it"
    best_metric = "val/map"
    tie_metric = "val/missed"
    spawnable = True
    sync_bn_default = True
    options_model = DetectionOptions

    def __init__(self, config: TrainConfig) -> None:
        self.config = config
        self.options = options_of(config, DetectionOptions)
        if "random_crop" in config.augment:
            raise ConfigError(
                "augment: random_crop would cut objects off, and detection has no rule for what is left of them; "
                "horizontal_flip moves boxes along"
            )
        if config.strategy == "dp":
            raise ConfigError(
                'strategy: dp splits a batch as tensors, and detectors take lists of objects; "ddp" trains on several '
                "devices"
            )
        own_size = _OWN_SIZE.get(config.model, config.image_size)
        if config.image_size != own_size:
            raise ConfigError(
                f"image_size: {config.model} is made for {own_size} pixels, not {config.image_size}; other detectors "
                "take any size"
            )

    @classmethod
    def models(cls) -> Sequence[str]:
        return detector_names()

    def build_data(self, group: ProcessGroup) -> TaskData:
        data = open_scene_data(self.config, needs="boxes", group=group)
        scenes, size = data.scenes, self.config.image_size
        flips = "horizontal_flip" in self.config.augment
        return TaskData(
            train=BoxedImages(data.train_images, scenes.train, size=size, flips=flips),
            val=BoxedImages(data.val_images, scenes.val, size=size),
            samples=scenes.samples,
            class_names=scenes.class_names,
            warnings=scenes.warnings,
            notes=data.notes,
            collate=_collate,
            prepare_train=_prepare,
            prepare_val=_prepare,
        )

    def build_model(self, data: TaskData) -> nn.Module:
        config = self.config
        refuse_unknown_model(config, known=self.models())
        model = build_detector(config.model, num_classes=1 + len(data.class_names))
        if config.dropout is not None:
            set_dropout(model, config)
        set_momentum(model, self.options.bn_momentum)
        return model

    def check_model(self, model: nn.Module, data: TaskData) -> None:
        images, targets = data.prepare_val(data.collate([data.val[0]] * 2))
        detections = outputs_of(model, images, config=self.config)
        parts = {"boxes", "scores", "labels"}
        is_list = isinstance(detections, list) and len(detections) == 2 and parts <= set(detections[0])
        losses = outputs_of(model, images, targets, config=self.config, is_training=True) if is_list else None
        if not isinstance(losses, Mapping) or not losses or not all(map(_is_loss, losses.values())):
            raise ConfigError(
                f"model: {self.config.model} has to return, as torchvision's detectors do, a list with a dictionary of "
                "boxes, scores and labels for each image in evaluation, and in training a dictionary of scalar losses"
            )

    def loss(self, model: nn.Module, batch: Any) -> torch.Tensor:
        images, targets = batch
        losses: dict[str, torch.Tensor] = model(images, targets)
        return torch.stack(list(losses.values())).sum()

    def quantities(self, data: TaskData) -> tuple[Quantity, ...]:  # noqa: ARG002  (the protocol's signature)
        return (Quantity("detections", (MOST_DETECTIONS, 6), is_gathered=True),)

    def measure(self, model: nn.Module, batch: Any) -> dict[str, torch.Tensor]:
        images, _ = batch
        found = [_as_rows(detections, size=self.config.image_size) for detections in model(images)]
        return {"detections": torch.stack(found)}

    def summarize(self, totals: Mapping[str, torch.Tensor], count: int, data: TaskData) -> Evaluation:  # noqa: ARG002  (the protocol's signature)
        assert isinstance(data.val, BoxedImages)
        classes, scenes = len(data.class_names), data.val.scenes
        found = average_precision(scenes, totals["detections"].numpy(), classes=classes)
        objects = sum(torch.from_numpy(scene.labels).bincount(minlength=classes) for scene in scenes)
        assert isinstance(objects, torch.Tensor)
        by_class = {
            name: {"objects": float(objects[label])} | ({} if precision is None else {"map": precision})
            for label, (name, precision) in enumerate(zip(data.class_names, found.by_class, strict=True))
        }
        metrics = {
            "val/map": found.all_thresholds,
            "val/map50": found.at_50,
            "val/map75": found.at_75,
            "val/missed": 1 - found.recall,
        }
        return Evaluation(metrics, by_class)


def _is_loss(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.dim() == 0


class BoxedImages(Dataset[dict[str, Any]]):
    """Images with the boxes of their objects, in pixels of `size` by `size`, and what is random about a sample."""

    def __init__(self, images: ImageSource, scenes: Sequence[Scene], *, size: int, flips: bool = False) -> None:
        """`flips`: whether half of the samples, drawn at random, are mirrored."""
        self.images, self.scenes, self.size, self.flips = images, scenes, size, flips

    def __len__(self) -> int:
        return len(self.scenes)

    def __getitem__(self, index: int) -> dict[str, Any]:
        """Return an image, [3, S, S] uint8, and its target; crowds are nothing that a detector could learn from."""
        image, scene = self.images[index], self.scenes[index]
        height, width = scene.size
        scale = torch.tensor([self.size / width, self.size / height] * 2)
        boxes = torch.from_numpy(scene.boxes).float() * scale
        kept = (boxes[:, 2:] > boxes[:, :2]).all(dim=1) & ~torch.from_numpy(scene.is_crowd)
        boxes = boxes[kept]
        if self.flips and torch.rand(()) < 0.5:
            image = image.flip(-1)
            boxes = torch.stack([self.size - boxes[:, 2], boxes[:, 1], self.size - boxes[:, 0], boxes[:, 3]], dim=1)
        labels = torch.from_numpy(scene.labels)[kept] + 1  # 0 is the background
        # What a detector draws at random about the image: from here, it is the same on every device list.
        seed = int(torch.randint(2**31, ()))
        return {"image": image, "target": {"boxes": boxes, "labels": labels, "seed": seed}}


def _collate(items: list[dict[str, Any]]) -> dict[str, Any]:
    """Make a batch; images have different numbers of objects, so those stay a list."""
    return {"images": torch.stack([item["image"] for item in items]), "targets": [item["target"] for item in items]}


def _prepare(batch: dict[str, Any]) -> tuple[torch.Tensor, list[dict[str, Any]]]:
    return batch["images"].float() / 255, batch["targets"]  # torchvision's detectors standardize by themselves


def _as_rows(detections: Mapping[str, torch.Tensor], *, size: int) -> torch.Tensor:
    """Return an image's best detections, [MOST_DETECTIONS, 6] as `average_precision` takes them."""
    boxes, labels = detections["boxes"], detections["labels"]
    rows = boxes.new_zeros((MOST_DETECTIONS, 6), dtype=torch.promote_types(boxes.dtype, torch.float32))
    # Detectors without a class for the background (FCOS, RetinaNet) may tell of it all the same.
    scores = detections["scores"].masked_fill(labels == 0, -1)
    best = scores.argsort(descending=True, stable=True)[:MOST_DETECTIONS]
    best = best[scores[best] >= 0]
    rows[: len(best), :4] = boxes[best] / size
    rows[: len(best), 4] = scores[best]
    rows[: len(best), 5] = labels[best]
    return rows
