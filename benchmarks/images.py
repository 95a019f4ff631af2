"""How fast images come: ours from files to normalised batches on the device, beside a plain torchvision pipeline."""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torchvision
from PIL import Image
from torch.utils.data import DataLoader
from torchvision import transforms

from benchmarks.report import Line, spread
from trainer.config import TrainConfig
from trainer.data.loading import build_loader, on_device
from trainer.data.seeded import SeededSamples
from trainer.process_group import ProcessGroup
from trainer.recipes.registry import build_recipe
from trainer.sampling import GlobalBatchSampler

IMAGES = 600
WIDTH, HEIGHT, QUALITY = 640, 480, 90
BATCH, WORKERS, SIZE = 32, 2, 224
EPOCHS = 3
TURNS = 3


class Speed(NamedTuple):
    """Images per second."""

    first: float
    """In the first epoch, with all that comes before its first batch: listing, looking for broken files, starting."""
    later: float
    """In the epochs after it."""

    def __str__(self) -> str:
        return f"{self.first:.0f}, then {self.later:.0f}"


def measure(say: Callable[[str], None]) -> list[Line]:
    """Load a folder of drawn JPEGs for some epochs, ours and theirs in turns."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    ours, theirs = [], []
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the loaders need the cores: of more, each would spin there while it waits for the others
    with tempfile.TemporaryDirectory(prefix="rankzero-bench-") as folder:
        images = Path(folder)
        say(f"images: drawing {IMAGES} JPEGs of {WIDTH} by {HEIGHT} pixels …")
        _draw(images)
        for turn in range(TURNS):
            theirs.append(_speed(partial(_torchvisions, images, device), device))
            ours.append(_speed(partial(_ours, images, device), device))
            rates = f"{ours[-1]} images/s, ImageFolder + DataLoader {theirs[-1]}"
            say(f"images: turn {turn + 1} of {TURNS}: {rates}")
    torch.set_num_threads(threads)
    what = f"JPEGs to {BATCH} x 3 x {SIZE} x {SIZE} float32 on {device.type}"
    return [
        _line(f"{what}, first epoch", [speed.first for speed in ours], [speed.first for speed in theirs]),
        _line(f"{what}, later epochs", [speed.later for speed in ours], [speed.later for speed in theirs]),
    ]


def _line(what: str, ours: list[float], theirs: list[float]) -> Line:
    ratio = statistics.median(ours) / statistics.median(theirs)
    return Line(what, spread(ours, "images/s"), f"torchvision: {spread(theirs, 'images/s')}", ratio)


def _speed(begin: Callable[[], Callable[[], Iterator[torch.Tensor]]], device: torch.device) -> Speed:
    """Walk through the epochs that `begin` gets ready; each batch is asked for once the one before it is there."""
    begun_s, times_s = time.perf_counter(), []
    epoch = begin()
    for _ in range(EPOCHS):
        seen = sum(len(batch) for batch in epoch())
        assert seen == IMAGES, f"{seen} images came"
        if device.type == "cuda":
            torch.cuda.synchronize()
        times_s.append(time.perf_counter())
    return Speed(first=IMAGES / (times_s[0] - begun_s), later=IMAGES * (EPOCHS - 1) / (times_s[-1] - times_s[0]))


def _ours(images: Path, device: torch.device) -> Callable[[], Iterator[torch.Tensor]]:
    """What feeds a training run on one device: its data, sampler and loader, and how its steps prepare a batch."""
    config = TrainConfig(model="resnet50", data=str(images), image_size=SIZE, batch=BATCH, num_workers=WORKERS)
    data = build_recipe(config).build_data(ProcessGroup.alone(device))
    sampler = GlobalBatchSampler(data.train, batch=BATCH, rank=0, world_size=1, seed=config.seed)
    samples = SeededSamples(data.train, seed=config.seed)
    loader = build_loader(
        samples,
        sampler,
        num_workers=WORKERS,
        prefetch=config.prefetch,
        device=device,
        collate=data.collate,
    )
    epochs = iter(range(EPOCHS))

    def epoch() -> Iterator[torch.Tensor]:
        sampler.start_at(next(epochs), 0)
        for batch in loader:
            yield data.prepare_train(on_device(batch, device))[0]

    return epoch


def _torchvisions(images: Path, device: torch.device) -> Callable[[], Iterator[torch.Tensor]]:
    """What torchvision's own reference scripts and most tutorials do, with loader processes that live on."""
    steps = [
        transforms.Resize((SIZE, SIZE)),
        transforms.ToTensor(),
        transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    ]
    folder = torchvision.datasets.ImageFolder(str(images / "train"), transforms.Compose(steps))
    loader: DataLoader[Any] = DataLoader(
        folder,
        batch_size=BATCH,
        shuffle=True,
        num_workers=WORKERS,
        persistent_workers=True,
        pin_memory=device.type == "cuda",
    )

    def epoch() -> Iterator[torch.Tensor]:
        for batch, _ in loader:
            yield batch.to(device, non_blocking=True)

    return epoch


def _draw(root: Path) -> None:
    """Draw images of two classes with the detail of photographs: noise at four scales, about 75 kB each."""
    random = np.random.default_rng(0)
    for number in range(IMAGES + 2):
        path = root / ("train" if number < IMAGES else "val") / f"class{number % 2}" / f"{number:04}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        image = np.zeros((HEIGHT, WIDTH, 3))
        for scale, weight in ((80, 0.5), (16, 0.3), (4, 0.15), (1, 0.05)):
            noise = random.integers(0, 256, (HEIGHT // scale, WIDTH // scale, 3), dtype=np.uint8)
            image += weight * np.asarray(Image.fromarray(noise).resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC))
        Image.fromarray(image.astype(np.uint8)).save(path, quality=QUALITY)
