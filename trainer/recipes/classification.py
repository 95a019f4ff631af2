"""The recipe `classification`: any of torchvision's image classifiers on an image folder."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torchvision.models
from torch import nn
from torch.nn import functional
from torchvision.ops import StochasticDepth
from torchvision.transforms import v2

from trainer.config import TrainConfig
from trainer.data.image_folder import ImageDataset, open_image_folder
from trainer.data.known import data_folder
from trainer.errors import ConfigError
from trainer.names import nearest
from trainer.precision import in_float32_or_more
from trainer.process_group import ProcessGroup
from trainer.recipes.recipe import Evaluation, Quantity, RecipeOptions, TaskData, options_of

# Mean and deviation of ImageNet's channels, which torchvision's models are tuned for.
_MEAN, _STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_TOP5_CLASSES = 6
"""With five classes or fewer, every answer is among the best five."""


class ClassificationOptions(RecipeOptions):
    """Options of `classification` alone."""


class Classification:
    """One label for each image; cross-entropy; top-1, and top-5 with more than five classes."""

    name = "classification"
    description = "Image classification with torchvision's models on an image folder"
    best_metric = "val/accuracy"
    tie_metric = "val/loss"
    spawnable = True
    sync_bn_default = True  # torchvision's models with BatchNorm are convolutional and have it in every block
    options_model = ClassificationOptions

    def __init__(self, config: TrainConfig) -> None:
        self.config = config
        self.options = options_of(config, ClassificationOptions)

    @classmethod
    def models(cls) -> Sequence[str]:
        names: list[str] = torchvision.models.list_models(module=torchvision.models)
        return names

    def build_data(self, group: ProcessGroup) -> TaskData:  # noqa: ARG002
        config = self.config
        folder = open_image_folder(data_folder(config.data), val_fraction=config.val_fraction)
        resize = v2.Resize([config.image_size, config.image_size], antialias=True)
        normalize = v2.Normalize(_MEAN, _STD)
        return TaskData(
            train=ImageDataset(folder.train, v2.Compose([resize, *_augmentations(config), normalize])),
            val=ImageDataset(folder.val, v2.Compose([resize, normalize])),
            samples=folder.samples,
            class_names=folder.class_names,
            warnings=folder.warnings,
        )

    def build_model(self, data: TaskData) -> nn.Module:
        config, known = self.config, self.models()
        if config.model not in known:
            raise ConfigError(
                f"model: {config.model!r} is not one of torchvision's classifiers; {nearest(config.model, known)}"
            )
        options = _model_options(config)
        try:
            model: nn.Module = torchvision.models.get_model(
                config.model, weights=None, num_classes=len(data.class_names), **options
            )
        except (ValueError, AssertionError) as error:
            raise ConfigError(
                f"model: {config.model} cannot be built for image_size {config.image_size}: {error}"
            ) from error
        if config.dropout is not None:
            _set_dropout(model, config)
        _refuse_image_size(model, config)
        return model

    def check_model(self, model: nn.Module, data: TaskData) -> None:
        config = self.config
        image, _ = data.prepare_val(data.collate([data.val[0]]))
        expected = (1, len(data.class_names))
        model.eval()
        try:
            with torch.random.fork_rng(devices=[]), torch.no_grad():
                logits = model(image)
        except (RuntimeError, ValueError, TypeError, AssertionError) as error:
            raise ConfigError(
                f"model: {config.model} does not take a batch of images of shape {tuple(image.shape)}: {error}"
            ) from error
        finally:
            model.train()
        if not isinstance(logits, torch.Tensor) or tuple(logits.shape) != expected:
            is_tensor = isinstance(logits, torch.Tensor)
            shown = f"a tensor of shape {tuple(logits.shape)}" if is_tensor else f"a {type(logits).__name__}"
            raise ConfigError(
                f"model: {config.model} returns {shown} for one image; {config.data!r} has "
                f"{len(data.class_names)} classes, so it has to return logits of shape {expected}"
            )

    def loss(self, model: nn.Module, batch: Any) -> torch.Tensor:
        images, labels = batch
        return functional.cross_entropy(model(images), labels)

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


def _augmentations(config: TrainConfig) -> list[nn.Module]:
    size = config.image_size
    known = {
        "random_crop": v2.RandomCrop(size, padding=size // 8, padding_mode="reflect"),
        "horizontal_flip": v2.RandomHorizontalFlip(),
    }
    return [known[name] for name in config.augment]


def _model_options(config: TrainConfig) -> dict[str, Any]:
    """What some of torchvision's builders need beside the number of classes."""
    if config.model in ("googlenet", "inception_v3"):
        return {"aux_logits": False, "init_weights": True}  # the auxiliary heads would make the output a tuple
    if config.model.startswith("vit_"):
        return {"image_size": config.image_size}
    if config.model == "maxvit_t":
        return {"input_size": (config.image_size, config.image_size)}
    return {}


def _set_dropout(model: nn.Module, config: TrainConfig) -> None:
    probability = config.dropout or 0.0
    layers = [layer for layer in model.modules() if isinstance(layer, nn.modules.dropout._DropoutNd)]
    if not layers and probability:
        raise ConfigError(f"dropout: {config.model} has no dropout layer; leave dropout out")
    for layer in layers:
        layer.p = probability
    if probability == 0:  # whatever else drops at random is off as well
        for module in model.modules():
            if isinstance(module, StochasticDepth):
                module.p = 0.0
            elif isinstance(module, nn.MultiheadAttention):
                module.dropout = 0.0


def _refuse_image_size(model: nn.Module, config: TrainConfig) -> None:
    """Try the shapes through the model without computing anything (the meta device), to fail with a clear message."""
    state = {name: value.to("meta") for name, value in (*model.named_parameters(), *model.named_buffers())}
    image = torch.empty((1, 3, config.image_size, config.image_size), device="meta")
    try:
        model.eval()
        torch.func.functional_call(model, state, (image,))
    except (RuntimeError, ValueError, AssertionError) as error:
        raise ConfigError(f"image_size: {config.image_size} pixels do not suit {config.model}: {error}") from error
    finally:
        model.train()
