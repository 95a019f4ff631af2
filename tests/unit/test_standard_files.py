"""CIFAR and MNIST from the files they are published in: read as they are, refused where they are not."""

import gzip
import os
import pickle
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from trainer.config import TrainConfig
from trainer.data.cifar import read_batches, read_names
from trainer.data.labelled import LabelledData
from trainer.data.opening import open_labelled
from trainer.data.synthetic_options import SyntheticOptions
from trainer.errors import DataError
from trainer.preflight import check_inputs
from trainer.process_group import ProcessGroup
from trainer.train_file import TrainFile

FINE = [f"fine {number}" for number in range(100)]
CIFAR10 = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]


@pytest.fixture(autouse=True)
def data_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RANKZERO_DATA_ROOT", str(tmp_path))
    return tmp_path


def noise(*shape: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.random.default_rng(len(shape)).integers(0, 256, shape, dtype=np.uint8)


def write_cifar10(folder: Path, *, images: int = 4) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Write its seven files; return the pixels of all training images, [N, 3072]."""
    folder.mkdir(parents=True)
    pixels = noise(6 * images, 3072)
    names = [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]
    for number, name in enumerate(names):
        part = pixels[number * images : (number + 1) * images]
        content = {"data": part, "labels": [(number + each) % 10 for each in range(images)], "batch_label": name}
        (folder / name).write_bytes(pickle.dumps(content, protocol=2))
    (folder / "batches.meta").write_bytes(pickle.dumps({"label_names": CIFAR10}, protocol=2))
    return pixels[: 5 * images]


def write_cifar100(folder: Path) -> None:
    folder.mkdir(parents=True)
    for name, images in (("train", 6), ("test", 2)):
        content = {"data": noise(images, 3072), "fine_labels": [99 - each for each in range(images)]}
        (folder / name).write_bytes(pickle.dumps(content | {"coarse_labels": [0] * images}, protocol=2))
    (folder / "meta").write_bytes(pickle.dumps({"fine_label_names": FINE, "coarse_label_names": ["c"]}, protocol=2))


def idx(array: np.ndarray[Any, np.dtype[np.uint8]]) -> bytes:
    return struct.pack(f">4B{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


def write_mnist(folder: Path, *, ending: str = "", images: Iterable[int] = (6, 2)) -> None:
    folder.mkdir(parents=True)
    for split, count in zip(("train", "t10k"), images, strict=True):
        labels = np.arange(count, dtype=np.uint8) % 10
        for name, array in (
            (f"{split}-images-idx3-ubyte", noise(count, 28, 28)),
            (f"{split}-labels-idx1-ubyte", labels),
        ):
            content = idx(array)
            (folder / (name + ending)).write_bytes(gzip.compress(content) if ending else content)


def opened(data: str | Path, *, size: int = 32) -> LabelledData:
    config = TrainConfig(model="resnet18", data=str(data), image_size=size)
    return open_labelled(config, synthetic=SyntheticOptions(), group=ProcessGroup.alone(torch.device("cpu")))


def python2_pickle(name: str, pixels: bytes) -> bytes:
    """A batch of one image as Python 2 wrote it: strings of no encoding, and NumPy's names of then."""

    def text(value: str) -> bytes:
        return b"U" + bytes([len(value)]) + value.encode()

    array = (
        b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\nK\x00\x85U\x01btR(K\x01K\x01M\x00\x0c\x86"
        b"cnumpy\ndtype\n(U\x02u1K\x00K\x01tR(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89"
        b"T" + struct.pack("<i", len(pixels)) + pixels + b"tb"
    )
    return (
        b"\x80\x02}(" + text("batch_label") + text(name) + text("labels") + b"](K\x06e" + text("data") + array + b"u."
    )


@pytest.mark.parametrize("by", ["name", "path"])
def test_cifar10_is_read_with_its_own_split_and_class_names(by: str, data_root: Path) -> None:
    folder = data_root / "cifar-10-batches-py"
    pixels = write_cifar10(folder)
    data = opened("cifar10" if by == "name" else folder)
    assert data.class_names == tuple(CIFAR10)
    assert (len(data.train.images), len(data.val.images)) == (20, 4)
    assert data.train.labels[:8].tolist() == [0, 1, 2, 3, 1, 2, 3, 4]
    images = torch.stack([data.train.images[index] for index in range(20)])
    assert torch.equal(images, torch.from_numpy(pixels).view(20, 3, 32, 32))
    assert data.samples == opened("cifar10").samples


def test_cifar100_is_read_with_its_hundred_classes(data_root: Path) -> None:
    write_cifar100(data_root / "cifar-100-python")
    for data in (opened("cifar100"), opened(data_root / "cifar-100-python")):
        assert data.class_names == tuple(FINE)
        assert data.train.labels.tolist() == [99, 98, 97, 96, 95, 94]
        assert (len(data.train.images), len(data.val.images)) == (6, 2)


@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize(
    ("name", "folder", "first"), [("mnist", "MNIST/raw", "0"), ("fashion_mnist", "FashionMNIST/raw", "T-shirt/top")]
)
def test_mnist_and_fashion_mnist_are_read_gzipped_or_not(
    name: str, folder: str, first: str, ending: str, data_root: Path
) -> None:
    write_mnist(data_root / folder, ending=ending)
    for data in (opened(name, size=28), opened(data_root / folder, size=28)):
        assert (len(data.class_names), data.class_names[0]) == (10, first)
        assert data.train.labels.tolist() == [0, 1, 2, 3, 4, 5]
        expected = torch.from_numpy(noise(6, 28, 28))[4]
        assert torch.equal(data.train.images[4], expected.expand(3, 28, 28))


def test_images_of_another_size_are_resized_and_are_the_caller_s_own(data_root: Path) -> None:
    write_mnist(data_root / "MNIST/raw")
    for size in (16, 28, 64):
        data = opened("mnist", size=size)
        image = data.train.images[0]
        assert (image.shape, image.dtype) == ((3, size, size), torch.uint8)
        image.zero_()
        assert data.train.images[0].count_nonzero() > 0


def test_missing_files_are_named_with_where_they_were_looked_for_and_where_to_get_them(data_root: Path) -> None:
    folder = data_root / "cifar-10-batches-py"
    write_cifar10(folder)
    (folder / "data_batch_3").unlink()
    (folder / "test_batch").unlink()
    expected = rf"CIFAR-10 is not on this host: {folder} lacks data_batch_3, test_batch\..*cifar-10-python\.tar\.gz"
    for data in ("cifar10", folder):
        with pytest.raises(DataError, match=expected):
            opened(data)
    with pytest.raises(DataError, match=r"MNIST is not on this host: .*MNIST/raw lacks train-images-idx3-ubyte, "):
        opened("mnist")


def test_missing_files_are_told_before_anything_is_started() -> None:
    file = TrainFile.of({"model": "resnet18", "data": "fashion_mnist", "device": "cpu"})
    with pytest.raises(DataError, match="Fashion-MNIST is not on this host"):
        check_inputs(file.run_config(), written=file.train)


def test_a_batch_that_python_2_has_written_is_read(tmp_path: Path) -> None:
    pixels = noise(3072).tobytes()
    (tmp_path / "batch").write_bytes(python2_pickle("training batch 1 of 5", pixels))
    images, labels = read_batches([tmp_path / "batch"], labels="labels")
    assert labels.tolist() == [6]
    assert images.numpy().tobytes() == pixels


class Evil:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


def test_a_batch_that_asks_for_a_function_is_refused_and_runs_nothing(tmp_path: Path) -> None:
    (tmp_path / "batch").write_bytes(pickle.dumps({"labels": [1], "data": Evil(tmp_path / "made")}, protocol=2))
    with pytest.raises(DataError, match=r"batch: not a batch .*it asks for (posix|nt)\.mkdir"):
        read_batches([tmp_path / "batch"], labels="labels")
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no pickle",
        pickle.dumps({"labels": [1], "data": noise(1, 3072)}, protocol=2)[:-500],
        pickle.dumps({"labels": [1, 2], "data": noise(1, 3072)}, protocol=2),
        pickle.dumps({"labels": [1], "data": noise(1, 3072).astype(np.float32)}, protocol=2),
        pickle.dumps({"labels": [1], "data": np.array([None] * 3072, dtype=object)}, protocol=2),
        pickle.dumps({"labels": "1", "data": noise(1, 3072)}, protocol=2),
        pickle.dumps({"labels": [10**30], "data": noise(1, 3072)}, protocol=2),
        pickle.dumps([1, 2, 3], protocol=2),
    ],
    ids=["empty", "text", "cut", "too few", "float", "objects", "labels", "huge label", "list"],
)
def test_what_is_no_batch_is_an_error_that_names_the_file(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "data_batch_1").write_bytes(content)
    with pytest.raises(DataError, match="data_batch_1"):
        read_batches([tmp_path / "data_batch_1"], labels="labels")


def test_class_names_that_are_not_there_are_an_error_that_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "batches.meta").write_bytes(pickle.dumps({"num_vis": 3072}, protocol=2))
    with pytest.raises(DataError, match=r"batches\.meta: there are no class names in it \(label_names\)"):
        read_names(tmp_path / "batches.meta", "label_names")


def test_cifar_with_one_class_is_refused_as_a_folder_with_one_is(data_root: Path) -> None:
    write_cifar10(data_root / "one")
    (data_root / "one" / "batches.meta").write_bytes(pickle.dumps({"label_names": ["cat"]}, protocol=2))
    with pytest.raises(DataError, match="one names only one class, 'cat'"):
        opened(data_root / "one")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("train-images-idx3-ubyte", idx(noise(6, 28, 28))[:-1], "its head tells of 4704 bytes, and 4703 follow"),
        ("train-images-idx3-ubyte", b"\0\0\x0d\3", "not an IDX file of bytes in 3 dimensions"),
        ("train-images-idx3-ubyte", idx(noise(6, 28, 0)), "train-images-idx3-ubyte: its images are of 28 by 0 pixels"),
        ("train-labels-idx1-ubyte", idx(np.zeros(5, np.uint8)), "5 labels for the 6 images"),
        ("train-labels-idx1-ubyte", idx(np.full(6, 12, np.uint8)), "labels in .* are 12 to 12, and there are 10"),
    ],
)
def test_a_broken_idx_file_is_named(name: str, content: bytes, said: str, data_root: Path) -> None:
    write_mnist(data_root / "MNIST/raw")
    (data_root / "MNIST/raw" / name).write_bytes(content)
    with pytest.raises(DataError, match=said):
        opened("mnist")


def test_a_gzip_file_that_is_cut_is_named(data_root: Path) -> None:
    write_mnist(data_root / "MNIST/raw", ending=".gz")
    path = data_root / "MNIST/raw/t10k-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DataError, match=r"t10k-images-idx3-ubyte\.gz: cannot be read"):
        opened("mnist")


def test_files_of_mnist_without_validation_images_are_refused(data_root: Path) -> None:
    write_mnist(data_root / "MNIST/raw", images=(6, 0))
    with pytest.raises(DataError, match="has no image"):
        opened("mnist")


def test_a_link_to_itself_beside_the_files_is_no_folder(data_root: Path) -> None:
    write_mnist(data_root / "mnist")
    (data_root / "mnist" / "loop").symlink_to(data_root / "mnist" / "loop")
    assert opened(data_root / "mnist").samples.startswith("6 train, 2 val, mnist")
