"""Opening: how a config's `data` becomes labelled images, by its name or by what is found at its path."""

import os
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import torch

from trainer.config import TrainConfig
from trainer.data.cifar import read_batches, read_names
from trainer.data.decoded import open_images
from trainer.data.digits import digits_folder
from trainer.data.image_folder import open_image_folder
from trainer.data.known import data_path, data_root
from trainer.data.labelled import LabelledData, LabelledImages
from trainer.data.mnist import CLOTHES, DIGITS, read_images
from trainer.data.raw_images import RawImages
from trainer.data.standard_files import STANDARD_FILES, recognized
from trainer.data.synthetic import open_synthetic
from trainer.data.synthetic_options import SyntheticOptions
from trainer.errors import DataError
from trainer.process_group import ProcessGroup


def open_labelled(config: TrainConfig, *, synthetic: SyntheticOptions, group: ProcessGroup) -> LabelledData:
    """Open what `data` names, with images of `image_size`; every rank has to call.

    Raises ConfigError for a name that is not known, and DataError for what is missing or cannot be read.
    """
    if config.data == "synthetic":
        return open_synthetic(synthetic, size=config.image_size)
    if config.data == "digits":
        return _image_folder(digits_folder(data_root()), config, group)
    if config.data in STANDARD_FILES:
        folder = data_root() / STANDARD_FILES[config.data].folder
        return _standard_files(config.data, folder, size=config.image_size)
    path = data_path(config.data)
    if os.path.isdir(path) and (name := recognized(path)) is not None:
        return _standard_files(name, path, size=config.image_size)
    return _image_folder(path, config, group)


def _image_folder(root: Path, config: TrainConfig, group: ProcessGroup) -> LabelledData:
    """List a folder, and leave out what cannot be read."""
    folder = open_image_folder(root, val_fraction=config.val_fraction)
    sets = [[file.path for file in files] for files in (folder.train, folder.val)]
    opened = open_images(*sets, config=config, group=group)
    folder = folder.without(opened.broken)
    train, val = (
        LabelledImages(images, torch.tensor([file.label for file in files]))
        for images, files in zip(opened.sources, (folder.train, folder.val), strict=True)
    )
    warnings = (*folder.warnings, *opened.warnings)
    return LabelledData(folder.class_names, train, val, folder.samples, warnings, opened.notes)


def _standard_files(name: str, folder: Path, *, size: int) -> LabelledData:
    """Read a data set that is known by its files, with the split that they have."""
    standard = STANDARD_FILES[name]
    standard.refuse_missing(folder)
    paths = [path for each in standard.files if (path := standard.file(folder, each)) is not None]
    match name:
        case "cifar10":
            *batches, test, names = paths
            class_names = read_names(names, "label_names")
            train, val = read_batches(batches, labels="labels"), read_batches([test], labels="labels")
        case "cifar100":
            all_train, test, names = paths
            class_names = read_names(names, "fine_label_names")
            train, val = read_batches([all_train], labels="fine_labels"), read_batches([test], labels="fine_labels")
        case _:
            class_names = CLOTHES if name == "fashion_mnist" else DIGITS
            train, val = read_images(*paths[:2]), read_images(*paths[2:])
    if len(class_names) == 1:
        raise DataError(f"data: {folder} names only one class, {class_names[0]!r}; classification needs two or more")
    for _, labels in (train, val):
        _refuse_other_classes(labels, class_names, folder)
    labels_read = sha256(train[1].numpy().tobytes() + val[1].numpy().tobytes()).hexdigest()
    return LabelledData(
        class_names=class_names,
        train=LabelledImages(RawImages(train[0], size=size), train[1]),
        val=LabelledImages(RawImages(val[0], size=size), val[1]),
        samples=f"{len(train[1])} train, {len(val[1])} val, {name}, sha256 {labels_read[:16]}",
    )


def _refuse_other_classes(labels: torch.Tensor, class_names: Sequence[str], folder: Path) -> None:
    if len(labels) == 0:
        raise DataError(f"data: a file in {folder} has no image")
    if labels.min() < 0 or labels.max() >= len(class_names):
        raise DataError(
            f"data: labels in {folder} are {labels.min()} to {labels.max()}, and there are {len(class_names)} classes"
        )
