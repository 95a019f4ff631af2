"""Augmentation: crops and flips that move whole pixels, as torchvision's do, whatever batch a sample is in."""

import torch
from torchvision.transforms.v2 import functional

from trainer.data.augmentation import Augmentation

SIZE = 16
BOTH = Augmentation.of(["random_crop", "horizontal_flip"], size=SIZE)


def images(count: int, *, channels: int = 3) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, (count, channels, SIZE, SIZE), dtype=torch.uint8, generator=generator)


def draws(augmentation: Augmentation, count: int) -> torch.Tensor:
    torch.manual_seed(0)
    return torch.stack([augmentation.draw() for _ in range(count)])


def test_a_change_is_torchvision_s_crop_of_a_mirrored_border_and_then_its_flip() -> None:
    batch, changes = images(40), draws(BOTH, 40)
    changed = BOTH.apply(batch, changes)
    for image, result, (down, right, is_mirrored) in zip(batch, changed, changes.tolist(), strict=True):
        padded = functional.pad(image, [2, 2, 2, 2], padding_mode="reflect")
        cropped = functional.crop(padded, 2 - down, 2 - right, SIZE, SIZE)
        assert torch.equal(result, functional.hflip(cropped) if is_mirrored else cropped)


def test_all_places_of_a_crop_and_both_sides_of_a_flip_are_drawn() -> None:
    down, right, is_mirrored = draws(BOTH, 400).T
    assert set(down.tolist()) == set(right.tolist()) == set(range(-2, 3))
    assert set(is_mirrored.tolist()) == {0, 1}


def test_what_is_not_asked_for_is_not_done() -> None:
    assert draws(Augmentation.of(["horizontal_flip"], size=SIZE), 40)[:, :2].count_nonzero() == 0
    assert draws(Augmentation.of(["random_crop"], size=SIZE), 40)[:, 2].count_nonzero() == 0
    assert Augmentation.of([], size=SIZE).changes_nothing


def test_a_sample_is_changed_alike_alone_and_in_a_batch_and_so_is_its_mask() -> None:
    batch, masks, changes = images(5), images(5, channels=1).long(), draws(BOTH, 5)
    changed, changed_masks = BOTH.apply(batch, changes), BOTH.apply(masks, changes)
    for number in range(5):
        alone = slice(number, number + 1)
        assert torch.equal(changed[alone], BOTH.apply(batch[alone], changes[alone]))
        assert torch.equal(changed_masks[alone], BOTH.apply(masks[alone], changes[alone]))
