"""The recipe `classification`: any of torchvision's image classifiers, one label for each image."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torchvision.transforms import v2

from trainer.config import TrainConfig
from trainer.data.augmentation import Augmentation
from trainer.data.items import TrainingItems, ValidationItems
from trainer.data.mixing import Mixing
from trainer.data.opening import open_labelled
from trainer.data.standardization import Standardization
from trainer.errors import ConfigError
from trainer.precision import in_float32_or_more
from trainer.process_group import ProcessGroup
from trainer.recipes.classifiers import build_classifier, classifier_names
from trainer.recipes.model_checks import outputs_of, refuse_unknown_model
from trainer.recipes.own_options import ClassificationOptions
from trainer.recipes.recipe import Evaluation, Quantity, TaskData, options_of

_TOP5_CLASSES = 6
"""With five classes or fewer, every answer is among the best five."""


class Classification:
    """One label for each image; cross-entropy; top-1, and top-5 with more than five classes."""

    name = "classification"
    description = "Image classification with torchvision's models"
    best_metric = "val/accuracy"
    tie_metric = "val/loss"
    spawnable = True
    sync_bn_default = True  # torchvision's models with BatchNorm are convolutional and have it in every block
    options_model = ClassificationOptions

    def __init__(self, config: TrainConfig) -> None:
        self.config = config
        self.options = options_of(config, ClassificationOptions)
        if "synthetic" in config.options and config.data != "synthetic":
            raise ConfigError(f"options: synthetic is of the data set synthetic, and data is {config.data!r}")
        self.augmentation = Augmentation.of(config.augment, size=config.image_size)
        mixing = Mixing(config.image_size, mixup=self.options.mixup, cutmix=self.options.cutmix)
        self.mixing = None if mixing.changes_nothing else mixing
        self.standardize = Standardization()

    @classmethod
    def models(cls) -> Sequence[str]:
        return classifier_names()

    def build_data(self, group: ProcessGroup) -> TaskData:
        data = open_labelled(self.config, synthetic=self.options.synthetic, group=group)
        train = TrainingItems(
            data.train, augmentation=self.augmentation, randaugment=self._randaugment(), mixing=self.mixing
        )
        return TaskData(
            train=train,
            val=ValidationItems(data.val),
            samples=data.samples,
            class_names=data.class_names,
            warnings=data.warnings,
            notes=data.notes,
            prepare_train=self._prepare_train,
            prepare_val=self._prepare_val,
        )

    def build_model(self, data: TaskData) -> nn.Module:
        refuse_unknown_model(self.config, known=self.models())
        return build_classifier(self.config, classes=len(data.class_names))

    def check_model(self, model: nn.Module, data: TaskData) -> None:
        config = self.config
        image, _ = data.prepare_val(data.collate([data.val[0]]))
        expected = (1, len(data.class_names))
        logits = outputs_of(model, image, config=config)
        if not isinstance(logits, torch.Tensor) or tuple(logits.shape) != expected:
            is_tensor = isinstance(logits, torch.Tensor)
            shown = f"a tensor of shape {tuple(logits.shape)}" if is_tensor else f"a {type(logits).__name__}"
            raise ConfigError(
                f"model: {config.model} returns {shown} for one image; {config.data!r} has "
                f"{len(data.class_names)} classes, so it has to return logits of shape {expected}"
            )

    def loss(self, model: nn.Module, batch: Any) -> torch.Tensor:
        images, labels, *mixed = batch
        logits: torch.Tensor = model(images)
        if not mixed:
            return functional.cross_entropy(logits, labels, label_smoothing=self.options.label_smoothing)
        partner_labels, weights = mixed
        own, partners = self._losses(logits, labels), self._losses(logits, partner_labels)
        mixed_losses: torch.Tensor = own * weights + partners * (1 - weights)
        return mixed_losses.mean()

    def quantities(self, data: TaskData) -> tuple[Quantity, ...]:
        classes = len(data.class_names)
        top5 = (Quantity("in_top5"),) if classes >= _TOP5_CLASSES else ()
        return (Quantity("loss"), Quantity("correct", (classes,)), Quantity("samples", (classes,)), *top5)

    def measure(self, model: nn.Module, batch: Any) -> dict[str, torch.Tensor]:
        images, labels = batch
        logits = in_float32_or_more(model(images))
        of_class = functional.one_hot(labels, logits.shape[1])
        values = {
            "loss": functional.cross_entropy(logits, labels, reduction="none"),
            "correct": of_class * (logits.argmax(dim=1) == labels)[:, None],
            "samples": of_class,
        }
        if logits.shape[1] >= _TOP5_CLASSES:
            values["in_top5"] = (logits.topk(5, dim=1).indices == labels[:, None]).any(dim=1)
        return values

    def summarize(self, totals: Mapping[str, torch.Tensor], count: int, data: TaskData) -> Evaluation:
        correct, samples = totals["correct"].tolist(), totals["samples"].tolist()
        metrics = {"val/loss": totals["loss"].item() / count, "val/accuracy": sum(correct) / count}
        if "in_top5" in totals:
            metrics["val/top5"] = totals["in_top5"].item() / count
        rows = zip(data.class_names, correct, samples, strict=True)
        return Evaluation(metrics, {name: {"correct": right, "samples": of_class} for name, right, of_class in rows})

    def _losses(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return the loss of each sample. With a target that is mixed it is mixed alike, since it is linear in it."""
        smoothing = self.options.label_smoothing
        return functional.cross_entropy(logits, labels, label_smoothing=smoothing, reduction="none")

    def _randaugment(self) -> nn.Module | None:
        if self.options.randaugment is None:
            return None
        transform: nn.Module = v2.RandAugment(self.options.randaugment_ops, self.options.randaugment)
        return transform

    def _prepare_train(self, batch: dict[str, Any]) -> tuple[torch.Tensor, ...]:
        """Return images and labels; with mixing also the partners' labels and the weights of the samples' own."""
        images = self._changed(batch)
        if self.mixing is None:
            return images, batch["label"]
        images = self.mixing.blend(images, self._changed(batch["partner"]), batch["mix"])
        return images, batch["label"], batch["partner"]["label"], batch["mix"][:, 0]

    def _prepare_val(self, batch: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
        return self.standardize(batch["image"]), batch["label"]

    def _changed(self, samples: dict[str, Any]) -> torch.Tensor:
        images = samples["image"]
        if not self.augmentation.changes_nothing:
            images = self.augmentation.apply(images, samples["changes"])
        return self.standardize(images)
