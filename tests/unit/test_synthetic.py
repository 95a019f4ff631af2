"""The data set `synthetic`: the same images everywhere, told apart by their class's pattern."""

import torch

from trainer.data.labelled import LabelledData
from trainer.data.synthetic import open_synthetic
from trainer.data.synthetic_options import SyntheticOptions


def drawn(*, size: int = 32, **options: int) -> LabelledData:
    return open_synthetic(SyntheticOptions(**options), size=size)


def test_an_image_is_the_same_whenever_it_is_drawn_and_no_two_are_alike() -> None:
    one, other = drawn(), drawn(train=50)
    assert torch.equal(one.train.images[7], other.train.images[7])
    assert not torch.equal(one.train.images[7], one.train.images[17])
    assert not torch.equal(one.train.images[7], one.val.images[7])


def test_it_has_the_sizes_that_are_asked_for_and_each_class_as_often() -> None:
    data = drawn(size=48, classes=7, train=21, val=14)
    assert (len(data.train.images), len(data.val.images), len(data.class_names)) == (21, 14, 7)
    assert data.train.images[20].shape == (3, 48, 48)
    assert data.train.images[20].dtype == torch.uint8
    assert torch.bincount(data.train.labels).tolist() == [3] * 7
    assert data.samples != drawn(size=48, classes=7, train=21, val=15).samples


def test_classes_differ_by_more_than_noise_and_images_of_one_by_more_as_well() -> None:
    """Neither is one pixel enough to tell a class, nor is there nothing to see."""
    data = drawn(classes=2, train=200)
    images = torch.stack([data.train.images[index] for index in range(200)]).float()
    by_class = [images[data.train.labels == label] for label in (0, 1)]
    colours = [of_class.mean(dim=(2, 3)) for of_class in by_class]
    apart = (colours[0].mean(dim=0) - colours[1].mean(dim=0)).abs().max()
    assert apart > 3 * max(of_class.std(dim=0).max() for of_class in colours)
    assert min(of_class.std(dim=0).min() for of_class in by_class) > 20


def test_an_image_size_need_not_divide_by_the_cells_of_a_pattern() -> None:
    assert drawn(size=9).train.images[0].shape == (3, 9, 9)


def test_its_numbers_may_have_a_point_with_nothing_behind_it_as_in_the_schema_that_is_published() -> None:
    assert SyntheticOptions.model_validate({"classes": 12.0}).classes == 12
