"""Classification: what a training batch is made of, what its loss is, and what is measured."""

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from trainer.config import TrainConfig
from trainer.data.loading import on_device
from trainer.data.seeded import SeededSamples
from trainer.errors import ConfigError
from trainer.process_group import ProcessGroup
from trainer.recipes.classification import Classification
from trainer.recipes.recipe import TaskData

ALL: dict[str, Any] = {"mixup": 0.4, "cutmix": 1.0, "randaugment": 9, "label_smoothing": 0.1}


def classification(*, classes: int = 4, augment: tuple[str, ...] = (), **options: Any) -> Classification:
    synthetic = {"classes": classes, "train": 12, "val": 6}
    fields = {"model": "resnet18", "data": "synthetic", "image_size": 16, "augment": augment}
    return Classification(TrainConfig.model_validate(fields | {"options": options | {"synthetic": synthetic}}))


def opened(recipe: Classification) -> TaskData:
    return recipe.build_data(ProcessGroup.alone(torch.device("cpu")))


class Fixed(nn.Module):
    """Answers with the logits that it is given."""

    def __init__(self, logits: torch.Tensor) -> None:
        super().__init__()
        self.logits = logits

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        assert len(images) == len(self.logits)
        return self.logits


@pytest.mark.parametrize("options", [{}, ALL], ids=["plain", "mixed"])
def test_a_sample_becomes_the_same_in_any_batch(options: dict[str, Any]) -> None:
    data = opened(classification(augment=("random_crop", "horizontal_flip"), **options))
    samples = SeededSamples(data.train, seed=5)
    together = data.prepare_train(data.collate([samples[0, index] for index in range(6)]))
    apart = [data.prepare_train(data.collate([samples[0, index]])) for index in reversed(range(6))]
    for part, parts in zip(together, zip(*reversed(apart), strict=True), strict=True):
        assert torch.equal(part, torch.cat(parts))


def test_an_epoch_changes_and_mixes_a_sample_otherwise_than_the_one_before() -> None:
    data = opened(classification(augment=("random_crop",), **ALL))
    samples = SeededSamples(data.train, seed=5)
    first, second = (data.prepare_train(data.collate([samples[epoch, 3]])) for epoch in (0, 1))
    assert not torch.equal(first[0], second[0])
    assert first[3] != second[3]


def test_partners_are_drawn_from_the_whole_training_set() -> None:
    data = opened(classification(mixup=1.0))
    samples = SeededSamples(data.train, seed=5)
    partners = {samples[epoch, 0]["partner"]["label"].item() for epoch in range(40)}
    assert partners == set(range(4))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_of_a_mixed_batch_is_the_mean_cross_entropy_with_its_mixed_targets(smoothing: float) -> None:
    recipe = classification(mixup=1.0, label_smoothing=smoothing)
    logits = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
    own, partners = torch.tensor([0, 1, 2, 3, 0]), torch.tensor([3, 1, 0, 0, 2])
    weights = torch.tensor([0.0, 0.25, 0.5, 0.9, 1.0])
    batch = torch.zeros(5, 3, 16, 16), own, partners, weights
    targets = functional.one_hot(own, 4) * weights[:, None] + functional.one_hot(partners, 4) * (1 - weights[:, None])
    expected = functional.cross_entropy(logits, targets, label_smoothing=smoothing)
    torch.testing.assert_close(recipe.loss(Fixed(logits), batch), expected)


def test_labels_are_smoothed_in_training_and_not_in_validation() -> None:
    logits, labels = torch.tensor([[2.0, -1.0, 0.0, 0.5]]), torch.tensor([0])
    batch = torch.zeros(1, 3, 16, 16), labels
    recipe = classification(label_smoothing=0.2)
    expected = functional.cross_entropy(logits, labels, label_smoothing=0.2)
    torch.testing.assert_close(recipe.loss(Fixed(logits), batch), expected)
    torch.testing.assert_close(
        recipe.measure(Fixed(logits), batch)["loss"], functional.cross_entropy(logits, labels, reduction="none")
    )


def test_validation_images_are_neither_changed_nor_mixed() -> None:
    plain, changed = (
        opened(recipe)
        for recipe in (classification(), classification(augment=("random_crop", "horizontal_flip"), **ALL))
    )
    for data in (plain, changed):
        assert [data.val[index].keys() for index in range(6)] == [{"image", "label"}] * 6
    batches = [data.prepare_val(data.collate([data.val[index] for index in range(6)])) for data in (plain, changed)]
    assert torch.equal(batches[0][0], batches[1][0])


def test_pixels_are_standardized_with_the_mean_and_deviation_of_imagenet() -> None:
    data = opened(classification())
    items = data.collate([data.val[0]])
    images, _ = data.prepare_val(items)
    assert images.dtype == torch.float32
    mean, deviation = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    expected = (items["image"] / 255 - mean[:, None, None]) / deviation[:, None, None]
    torch.testing.assert_close(images, expected)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_makes_the_same_of_a_batch_as_the_cpu() -> None:
    data = opened(classification(augment=("random_crop", "horizontal_flip"), **ALL))
    items = data.collate([SeededSamples(data.train, seed=5)[0, index] for index in range(12)])
    on_cpu, on_gpu = data.prepare_train(items), data.prepare_train(on_device(items, torch.device("cuda")))
    for ours, theirs in zip(on_cpu, on_gpu, strict=True):
        torch.testing.assert_close(theirs.cpu(), ours, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("classes", "has_top5"), [(2, False), (5, False), (6, True)])
def test_top_5_is_measured_where_it_says_more_than_nothing(classes: int, has_top5: bool) -> None:
    recipe = classification(classes=classes)
    data = opened(recipe)
    batch = data.prepare_val(data.collate([data.val[index] for index in range(6)]))
    measured = recipe.measure(Fixed(torch.randn(6, classes)), batch)
    assert list(measured) == [quantity.name for quantity in recipe.quantities(data)]
    totals = {name: values.double().sum(dim=0) for name, values in measured.items()}
    assert ("val/top5" in recipe.summarize(totals, 6, data).metrics) == has_top5


def test_each_class_is_told_how_many_samples_it_has_and_how_many_were_right() -> None:
    recipe = classification(classes=3)
    data = opened(recipe)
    logits = functional.one_hot(torch.tensor([0, 0, 2, 2, 1]), 3).float()
    measured = recipe.measure(Fixed(logits), (torch.zeros(5, 3, 16, 16), torch.tensor([0, 1, 2, 2, 2])))
    found = recipe.summarize({name: values.double().sum(dim=0) for name, values in measured.items()}, 5, data)
    assert found.metrics["val/accuracy"] == 3 / 5
    assert found.by_class == {
        "0": {"correct": 1, "samples": 1},
        "1": {"correct": 0, "samples": 1},
        "2": {"correct": 2, "samples": 3},
    }


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"label_smoothing": 1}, "options: label_smoothing"),
        ({"mixup": 0}, "options: mixup"),
        ({"mixup": 1e-320}, "options: mixup"),
        ({"cutmix": 1e308}, "options: cutmix"),
        ({"randaugment": 31}, "options: randaugment"),
        ({"mixup": True}, "options: mixup: true is a truth value"),
        ({"synthetic": {"train": True}}, r"options: synthetic\.train: true is a truth value"),
        ({"mix_up": 1}, "did you mean mixup"),
        ({"patience": 3}, "patience is no option of this recipe; patience stands beside `options`"),
        ({"synthetic": {"class": 3}}, "options: synthetic.class is no option"),
    ],
)
def test_an_option_that_cannot_be_is_named(options: dict[str, Any], named: str) -> None:
    config = TrainConfig(model="resnet18", data="synthetic", options=options)
    with pytest.raises(ConfigError, match=named):
        Classification(config)


def test_sizes_of_a_data_set_that_is_not_used_are_refused() -> None:
    config = TrainConfig(model="resnet18", data="digits", options={"synthetic": {"train": 10}})
    with pytest.raises(ConfigError, match="synthetic is of the data set synthetic, and data is 'digits'"):
        Classification(config)
