"""Items: what a loader gets of one labelled image, and with a training image all that is random about it."""

from typing import Any

import torch
from torch import nn
from torch.utils.data import Dataset

from trainer.data.augmentation import Augmentation
from trainer.data.labelled import LabelledImages
from trainer.data.mixing import Mixing


class TrainingItems(Dataset[dict[str, Any]]):
    """The items of a training set: an image as it was read, and all that is random about it."""

    def __init__(
        self,
        data: LabelledImages,
        *,
        augmentation: Augmentation,
        randaugment: nn.Module | None = None,
        mixing: Mixing | None = None,
    ) -> None:
        """`randaugment`: what else changes an image, here in its item, [3, S, S] uint8 to the same."""
        self.data, self.augmentation, self.randaugment, self.mixing = data, augmentation, randaugment, mixing

    def __len__(self) -> int:
        return len(self.data.labels)

    def __getitem__(self, index: int) -> dict[str, Any]:
        item = self._sample(index)
        if self.mixing is not None:
            item["mix"] = self.mixing.draw()
            item["partner"] = self._sample(int(torch.randint(len(self), ())))
        return item

    def _sample(self, index: int) -> dict[str, Any]:
        image = self.data.images[index]
        sample = {"image": image if self.randaugment is None else self.randaugment(image)}
        sample["label"] = self.data.labels[index]
        if not self.augmentation.changes_nothing:
            sample["changes"] = self.augmentation.draw()
        return sample


class ValidationItems(Dataset[dict[str, Any]]):
    """The items of a validation set: an image and its label."""

    def __init__(self, data: LabelledImages) -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data.labels)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"image": self.data.images[index], "label": self.data.labels[index]}
