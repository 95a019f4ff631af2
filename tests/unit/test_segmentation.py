"""Segmentation: what a pixel counts in the loss and in the metrics."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm as BatchNorm

from tests.shapes import NAMES, write_voc
from trainer.config import TrainConfig
from trainer.data.scenes import VOID
from trainer.errors import ConfigError, DataError
from trainer.process_group import ProcessGroup
from trainer.recipes.recipe import TaskData
from trainer.recipes.segmentation import Segmentation

SIZE = 32


def recipe(data: Path | str = "./nowhere", **options: Any) -> Segmentation:
    fields = {"model": "lraspp_mobilenet_v3_large", "image_size": SIZE, "data": str(data), "cache_gb": 0} | options
    return Segmentation(TrainConfig.model_validate(fields | {"recipe": "segmentation"}))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_voc(tmp_path_factory.mktemp("voc"), train=4, val=2)


def opened(of: Segmentation) -> TaskData:
    return of.build_data(ProcessGroup.alone(torch.device("cpu")))


class Told(nn.Module):
    """Returns the logits that it is given, whatever the images."""

    def __init__(self, **outputs: torch.Tensor) -> None:
        super().__init__()
        self.outputs = outputs

    def forward(self, images: torch.Tensor) -> dict[str, torch.Tensor]:  # noqa: ARG002  (as a model is called)
        return self.outputs


def test_each_image_weighs_the_same_however_many_of_its_pixels_are_void() -> None:
    logits = torch.randn(3, 4, 8, 8, generator=torch.Generator().manual_seed(0))
    masks = torch.randint(4, (3, 8, 8), generator=torch.Generator().manual_seed(1))
    masks[1, :, :7] = VOID
    masks[2] = VOID
    loss = recipe().loss(Told(out=logits), (None, masks))
    of_first = functional.cross_entropy(logits[:1], masks[:1])
    of_second = functional.cross_entropy(logits[1:2], masks[1:2], ignore_index=VOID)
    assert loss.item() == pytest.approx((of_first + of_second).item() / 3)


def test_an_auxiliary_head_is_built_and_weighed_where_it_is_asked_for() -> None:
    data = TaskData(train=[], val=[], samples="", class_names=("background", "a"))  # type: ignore[arg-type]  # not looked at
    name = "deeplabv3_mobilenet_v3_large"
    assert getattr(recipe(model=name).build_model(data), "aux_classifier", None) is None
    of = recipe(model=name, options={"aux_loss": 0.5})
    assert isinstance(of.build_model(data).aux_classifier, nn.Module)
    main, auxiliary = torch.zeros(1, 2, 4, 4), torch.randn(1, 2, 4, 4, generator=torch.Generator().manual_seed(0))
    masks = torch.ones(1, 4, 4, dtype=torch.int64)
    told = Told(out=main, aux=auxiliary)
    expected = functional.cross_entropy(main, masks) + 0.5 * functional.cross_entropy(auxiliary, masks)
    assert of.loss(told, (None, masks)).item() == pytest.approx(expected.item())


def test_batchnorm_follows_as_fast_as_the_options_say() -> None:
    data = TaskData(train=[], val=[], samples="", class_names=("background", "a"))  # type: ignore[arg-type]  # not looked at
    momenta = [
        {
            layer.momentum
            for layer in recipe(options=options).build_model(data).modules()
            if isinstance(layer, BatchNorm)
        }
        for options in ({}, {"bn_momentum": 0.2})
    ]
    assert 0.01 in momenta[0]
    assert momenta[1] == {0.2}


def test_the_metrics_are_of_all_pixels_together_and_leave_out_void_and_classes_that_nobody_names() -> None:
    masks = torch.tensor([[[0, 0, 1, VOID]], [[1, 1, 1, 0]]])
    told = torch.tensor([[[0, 1, 1, 2]], [[1, 1, 0, 0]]])
    logits = functional.one_hot(told, 4).permute(0, 3, 1, 2).float() * 9
    measured = recipe().measure(Told(out=logits), (None, masks))
    data = TaskData(train=[], val=[], samples="", class_names=("background", "a", "b", "c"))  # type: ignore[arg-type]  # not looked at
    totals = {name: values.double().sum(dim=0) for name, values in measured.items()}
    found = recipe().summarize(totals, 2, data)
    assert found.metrics["val/pixel_accuracy"] == pytest.approx(5 / 7)
    # background: 2 right of 2 + 1 + 1; a: 3 right of 3 + 1 + 1; b is told only where nobody can tell, c nowhere.
    assert found.metrics["val/miou"] == pytest.approx((2 / 4 + 3 / 5) / 2)
    assert found.by_class["a"] == {"pixels": 4, "iou": pytest.approx(3 / 5)}
    assert found.by_class["c"] == {"pixels": 0}


def test_an_image_and_its_mask_move_alike(folder: Path) -> None:
    of = recipe(folder, image_size=96, augment=["random_crop", "horizontal_flip"])
    data = opened(of)
    assert data.class_names == ("background", *NAMES)
    torch.manual_seed(3)
    batch = data.collate([data.train[index] for index in range(4)])
    assert batch["changes"].unique(dim=0).shape[0] > 1
    moved, masks = data.prepare_train(batch)
    brightest = moved.amax(dim=1) > 1.2  # the shapes' colours, far from the grey noise around them
    inner = -functional.max_pool2d(-(masks > 0).float(), 5, 1, 2) > 0
    outer = functional.max_pool2d((masks > 0).float(), 5, 1, 2) > 0
    assert inner.any()
    assert brightest[inner].float().mean() > 0.9
    assert brightest[~outer].float().mean() < 0.05


def test_a_model_of_the_callers_own_has_to_tell_of_each_pixel(folder: Path) -> None:
    of = recipe(folder)
    data = opened(of)
    of.check_model(nn.Conv2d(3, 4, 1), data)
    of.check_model(Told(out=torch.zeros(1, 4, SIZE, SIZE)), data)
    with pytest.raises(ConfigError, match=r"returns shape \(1, 3, 32, 32\).*\(1, 4, 32, 32\)"):
        of.check_model(nn.Conv2d(3, 3, 1), data)
    with pytest.raises(ConfigError, match="returns a dict for one image"):
        of.check_model(Told(logits=torch.zeros(1, 4, SIZE, SIZE)), data)
    with pytest.raises(ConfigError, match="does not take a batch of images of shape"):
        of.check_model(nn.Conv2d(5, 4, 1), data)


class WithAuxiliary(nn.Module):
    """A model of somebody's own with BatchNorm over pooled values, and an auxiliary head that it has in training."""

    def __init__(self, *, classes: int) -> None:
        super().__init__()
        self.head, self.norm, self.auxiliary = nn.Conv2d(3, 4, 1), nn.BatchNorm2d(3), nn.Conv2d(3, classes, 1)

    def forward(self, images: torch.Tensor) -> dict[str, torch.Tensor]:
        pooled = self.norm(images.mean(dim=(2, 3), keepdim=True))
        outputs = {"out": self.head(images + pooled)}
        return outputs | {"aux": self.auxiliary(images)} if self.training else outputs


def test_a_model_of_the_callers_own_without_an_auxiliary_head_is_refused_its_loss(folder: Path) -> None:
    of = recipe(folder, options={"aux_loss": 0.5})
    data = opened(of)
    model = WithAuxiliary(classes=4)
    model.auxiliary.eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}

    of.check_model(model, data)

    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert [part.training for part in model.modules()] == [True, True, True, False]
    with pytest.raises(ConfigError, match=r'^options\.aux_loss: .* returns shape \(2, 3, 32, 32\) as "aux" for two'):
        of.check_model(WithAuxiliary(classes=3), data)
    for model_without in (nn.Conv2d(3, 4, 1), Told(out=torch.zeros(1, 4, SIZE, SIZE))):
        recipe(folder).check_model(model_without, data)
        with pytest.raises(ConfigError, match=r'^options\.aux_loss: .* returns no "aux" .* or leave aux_loss out$'):
            of.check_model(model_without, data)


def test_what_a_model_cannot_be_built_with_is_named() -> None:
    data = TaskData(train=[], val=[], samples="", class_names=("background", "a"))  # type: ignore[arg-type]  # not looked at
    with pytest.raises(ConfigError, match=r"options\.aux_loss: lraspp_mobilenet_v3_large has no auxiliary head"):
        recipe(options={"aux_loss": 0.5}).build_model(data)
    with pytest.raises(ConfigError, match="deeplabv3_resnet50"):
        recipe(model="deeplab_resnet50").build_model(data)
    with pytest.raises(ConfigError, match="digits"):
        opened(recipe("digits"))


def test_images_that_cannot_be_read_are_named_or_left_out_with_their_masks(tmp_path: Path) -> None:
    root = write_voc(tmp_path / "voc", train=12, val=2)
    broken = root / "JPEGImages" / "train_0001.jpg"
    broken.write_bytes(broken.read_bytes()[:300])
    with pytest.raises(DataError, match=r"train_0001\.jpg"):
        opened(recipe(root))
    data = opened(recipe(root, on_bad_image="skip"))
    assert len(data.train) == 11  # type: ignore[arg-type]  # torch's Dataset has no length
    assert any("train_0001.jpg" in warning for warning in data.warnings)
    Image.new("L", (SIZE, 5)).save(root / "SegmentationClass" / "train_0000.png")
    with pytest.raises(DataError, match=r"train_0000\.jpg: 96 by 96 pixels, and its annotations are of 32 by 5"):
        opened(recipe(root))
    kept = np.asarray(Image.open(root / "SegmentationClass" / "train_0002.png").resize((SIZE, SIZE), 0))
    assert np.array_equal(data.train[1]["mask"].numpy(), kept)
