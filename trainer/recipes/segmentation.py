"""The recipe `segmentation`: torchvision's models that say of each pixel which class it is of."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torchvision.models
from torch import nn
from torch.nn import functional
from torch.utils.data import Dataset

from trainer.config import TrainConfig
from trainer.data.augmentation import Augmentation
from trainer.data.decoded import ImageSource
from trainer.data.masks import draw_mask
from trainer.data.scene_data import open_scene_data
from trainer.data.scenes import VOID, Scene
from trainer.data.standardization import Standardization
from trainer.errors import ConfigError
from trainer.precision import in_float32_or_more
from trainer.process_group import ProcessGroup
from trainer.recipes.batchnorm import set_momentum
from trainer.recipes.classifiers import set_dropout
from trainer.recipes.model_checks import outputs_of, refuse_unknown_model
from trainer.recipes.own_options import SegmentationOptions
from trainer.recipes.recipe import Evaluation, Quantity, TaskData, options_of


class Segmentation:
    """One class for each pixel; cross-entropy; the mean over classes of intersection over union."""

    name = "segmentation"
    description = "Semantic segmentation with torchvision's models, on data laid out as VOC, COCO or YOLO has it"
    best_metric = "val/miou"
    tie_metric = "val/loss"
    spawnable = True
    sync_bn_default = True
    options_model = SegmentationOptions

    def __init__(self, config: TrainConfig) -> None:
        self.config = config
        self.options = options_of(config, SegmentationOptions)
        self.augmentation = Augmentation.of(config.augment, size=config.image_size)
        self.standardize = Standardization()

    @classmethod
    def models(cls) -> Sequence[str]:
        names: list[str] = torchvision.models.list_models(module=torchvision.models.segmentation)
        return names

    def build_data(self, group: ProcessGroup) -> TaskData:
        data = open_scene_data(self.config, needs="masks", group=group)
        scenes, size = data.scenes, self.config.image_size
        return TaskData(
            train=MaskedImages(data.train_images, scenes.train, size=size, augmentation=self.augmentation),
            val=MaskedImages(data.val_images, scenes.val, size=size),
            samples=scenes.samples,
            class_names=("background", *scenes.class_names),
            warnings=scenes.warnings,
            notes=data.notes,
            prepare_train=self._prepare,
            prepare_val=self._prepare,
        )

    def build_model(self, data: TaskData) -> nn.Module:
        config = self.config
        refuse_unknown_model(config, known=self.models())
        if self.options.aux_loss and config.model.startswith("lraspp"):
            raise ConfigError(f"options.aux_loss: {config.model} has no auxiliary head; leave it out")
        auxiliary = {} if config.model.startswith("lraspp") else {"aux_loss": self.options.aux_loss > 0}
        model: nn.Module = torchvision.models.get_model(
            config.model, weights=None, weights_backbone=None, num_classes=len(data.class_names), **auxiliary
        )
        if config.dropout is not None:
            set_dropout(model, config)
        set_momentum(model, self.options.bn_momentum)
        return model

    def check_model(self, model: nn.Module, data: TaskData) -> None:
        config, classes = self.config, len(data.class_names)
        images, masks = data.prepare_val(data.collate([data.val[0]]))
        logits, expected = _main(outputs_of(model, images, config=config)), (1, classes, *masks.shape[1:])
        if not _has_shape(logits, expected):
            raise ConfigError(
                f"model: {config.model} returns {_shown(logits)} for one image; {config.data!r} has {classes} classes "
                f"with the background, so it has to return logits of shape {expected}, or a dictionary with them as "
                '"out"'
            )
        if not self.options.aux_loss:
            return
        # Two images: in training, BatchNorm cannot normalise by the single value that a pooled one leaves it.
        two = torch.cat([images, images])
        outputs, expected = outputs_of(model, two, config=config, is_training=True), (2, *expected[1:])
        auxiliary = outputs.get("aux") if isinstance(outputs, Mapping) else None
        if not _has_shape(auxiliary, expected):
            returned = f"{_shown(auxiliary)} as" if auxiliary is not None else "no"
            raise ConfigError(
                f'options.aux_loss: {config.model} returns {returned} "aux" for two images in training; let it return '
                f'a dictionary with logits of shape {expected} as "out" and as "aux", or leave aux_loss out'
            )

    def loss(self, model: nn.Module, batch: Any) -> torch.Tensor:
        images, masks = batch
        outputs = model(images)
        loss = _loss_by_image(_main(outputs), masks).mean()
        if self.options.aux_loss:
            loss = loss + self.options.aux_loss * _loss_by_image(outputs["aux"], masks).mean()
        return loss

    def quantities(self, data: TaskData) -> tuple[Quantity, ...]:
        classes = len(data.class_names)
        return Quantity("loss"), Quantity("pixels", (classes, classes))

    def measure(self, model: nn.Module, batch: Any) -> dict[str, torch.Tensor]:
        images, masks = batch
        logits = in_float32_or_more(_main(model(images)))
        return {"loss": _loss_by_image(logits, masks), "pixels": _confusion_by_image(logits, masks)}

    def summarize(self, totals: Mapping[str, torch.Tensor], count: int, data: TaskData) -> Evaluation:
        pixels = totals["pixels"]
        correct, of_class, told = pixels.diagonal(), pixels.sum(dim=1), pixels.sum(dim=0)
        union = of_class + told - correct
        is_there = union > 0  # a class that is neither in the set nor told is neither right nor wrong
        metrics = {
            "val/loss": totals["loss"].item() / count,
            "val/miou": (correct[is_there] / union[is_there]).mean().item() if is_there.any() else 0.0,
            "val/pixel_accuracy": (correct.sum() / pixels.sum().clamp(min=1)).item(),
        }
        by_class = {
            name: {"pixels": of_class[index].item()}
            | ({"iou": (correct[index] / union[index]).item()} if is_there[index] else {})
            for index, name in enumerate(data.class_names)
        }
        return Evaluation(metrics, by_class)

    def _prepare(self, batch: dict[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        images, masks = batch["image"], batch["mask"]
        if "changes" in batch:  # an image and its mask, as a fourth channel, move alike
            moved = self.augmentation.apply(torch.cat([images, masks[:, None]], dim=1), batch["changes"])
            images, masks = moved[:, :3], moved[:, 3]
        return self.standardize(images), masks.long()


class MaskedImages(Dataset[dict[str, torch.Tensor]]):
    """Images and the classes of their pixels: [3, S, S] and [S, S], both uint8, and what is random about a sample."""

    def __init__(
        self, images: ImageSource, scenes: Sequence[Scene], *, size: int, augmentation: Augmentation | None = None
    ) -> None:
        self.images, self.scenes, self.size, self.augmentation = images, scenes, size, augmentation

    def __len__(self) -> int:
        return len(self.scenes)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        item = {"image": self.images[index], "mask": draw_mask(self.scenes[index], size=self.size)}
        if self.augmentation is not None and not self.augmentation.changes_nothing:
            item["changes"] = self.augmentation.draw()
        return item


def _main(outputs: Any) -> Any:
    """Return the main one of the outputs that torchvision's models have; a model of one's own may return it alone."""
    return outputs.get("out", outputs) if isinstance(outputs, Mapping) else outputs


def _has_shape(logits: Any, expected: tuple[int, ...]) -> bool:
    return isinstance(logits, torch.Tensor) and tuple(logits.shape) == expected


def _shown(logits: Any) -> str:
    return f"shape {tuple(logits.shape)}" if isinstance(logits, torch.Tensor) else f"a {type(logits).__name__}"


def _loss_by_image(logits: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
    """Return the mean cross-entropy over each image's pixels that are not VOID, [images]; 0 where all of them are.

    The mean over a whole batch's pixels would weigh an image by how many of its pixels count, and a batch that is split
    among ranks would not have the mean of its parts.
    """
    by_pixel = functional.cross_entropy(logits, masks, ignore_index=VOID, reduction="none")
    return by_pixel.sum(dim=(1, 2)) / (masks != VOID).sum(dim=(1, 2)).clamp(min=1)


def _confusion_by_image(logits: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
    """Count for each image the pixels of each class (rows) that are told to be of each class, [images, C, C]."""
    images, classes = logits.shape[:2]
    pairs = (masks * classes + logits.argmax(dim=1)).flatten(1)
    counted = (masks != VOID).flatten(1)
    rows = [torch.bincount(pairs[index][counted[index]], minlength=classes**2) for index in range(images)]
    return torch.stack(rows).view(images, classes, classes)
