"""The plain loop: a PyTorch training on CIFAR-10's files, as everybody writes it. It uses nothing of ours.

    python plain_loop.py --root DATA …                        one device, or several with --data-parallel
    torchrun --nproc-per-node 2 plain_loop.py --root DATA …   DistributedDataParallel

Prints a line of JSON for each epoch: seconds (training, validation and saving) and accuracy.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DataParallel, DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler
from torchvision import models
from torchvision.datasets import CIFAR10
from torchvision.transforms import Compose, Normalize, RandomCrop, RandomHorizontalFlip, ToTensor

AMP_TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
NORMALIZE = [ToTensor(), Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))]
AUGMENT = [RandomCrop(32, padding=4, padding_mode="reflect"), RandomHorizontalFlip()]


class Files(CIFAR10):  # type: ignore[misc]  # torchvision is untyped
    """CIFAR-10's files whatever is in them: torchvision's own class refuses all but the published ones."""

    train_list = [[name, None] for name, _ in CIFAR10.train_list]  # noqa: RUF012  (torchvision's own form)
    test_list = [[name, None] for name, _ in CIFAR10.test_list]  # noqa: RUF012  (likewise)
    meta = CIFAR10.meta | {"md5": None}


def main() -> None:
    options = parse()
    is_distributed = "RANK" in os.environ
    rank, world_size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    device = torch.device("cpu")
    if options.device == "cuda":
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(device)
    if is_distributed:
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")

    train_loader = make_loader(options, is_training=True, batch=options.batch // world_size)
    test_loader = make_loader(options, is_training=False, batch=options.batch // world_size)
    torch.manual_seed(0)
    bare = models.get_model(options.model, num_classes=10).to(device)
    model: nn.Module = bare
    if is_distributed:
        model = DistributedDataParallel(bare, device_ids=[device.index] if device.type == "cuda" else None)
    elif options.data_parallel:
        model = DataParallel(bare, device_ids=list(range(options.data_parallel)))
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr, momentum=0.9, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=options.epochs * len(train_loader))
    scaler = torch.amp.GradScaler(device.type, enabled=options.amp == "fp16")
    amp = torch.autocast(device.type, dtype=AMP_TYPES.get(options.amp, torch.bfloat16), enabled=options.amp is not None)
    criterion = nn.CrossEntropyLoss()

    for epoch in range(options.epochs):
        begun_s = time.perf_counter()
        if is_distributed:
            train_loader.sampler.set_epoch(epoch)  # type: ignore[attr-defined]  # a DistributedSampler's
        model.train()
        for images, labels in train_loader:
            optimizer.zero_grad()
            with amp:
                loss = criterion(model(images.to(device, non_blocking=True)), labels.to(device, non_blocking=True))
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            schedule.step()
        with amp:
            accuracy = validate(model, test_loader, device)
        if rank == 0:
            torch.save({"model": bare.state_dict(), "optimizer": optimizer.state_dict()}, options.checkpoint)
            sys.stdout.write(json.dumps({"seconds": time.perf_counter() - begun_s, "accuracy": accuracy}) + "\n")
            sys.stdout.flush()
    if is_distributed:
        dist.destroy_process_group()


@torch.no_grad()
def validate(model: nn.Module, loader: "DataLoader[tuple[torch.Tensor, ...]]", device: torch.device) -> float:
    model.eval()
    right = torch.zeros((), device=device)
    count = torch.zeros((), device=device)
    for images, labels in loader:
        right += (model(images.to(device)).argmax(dim=1) == labels.to(device)).sum()
        count += len(labels)
    if dist.is_initialized():
        dist.all_reduce(right)
        dist.all_reduce(count)
    return (right / count).item()


def make_loader(
    options: argparse.Namespace, *, is_training: bool, batch: int
) -> "DataLoader[tuple[torch.Tensor, ...]]":
    dataset = Files(
        options.root, train=is_training, transform=Compose([*AUGMENT, *NORMALIZE] if is_training else NORMALIZE)
    )
    sampler: DistributedSampler[int] | None = None
    if dist.is_initialized():
        sampler = DistributedSampler(dataset, shuffle=is_training)
    return DataLoader(
        dataset,
        batch_size=batch,
        sampler=sampler,
        shuffle=is_training and sampler is None,
        num_workers=options.num_workers,
        persistent_workers=options.num_workers > 0,
        pin_memory=options.device == "cuda",
    )


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A plain PyTorch training on CIFAR-10's files.")
    parser.add_argument("--root", type=Path, required=True, help="the folder that has cifar-10-batches-py")
    parser.add_argument("--checkpoint", type=Path, required=True, help="the file to save to after each epoch")
    parser.add_argument("--device", choices=["cpu", "cuda"], required=True)
    parser.add_argument("--data-parallel", type=int, default=0, metavar="N", help="split batches among N GPUs")
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=256, help="over all ranks together")
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--amp", choices=sorted(AMP_TYPES))
    parser.add_argument("--num-workers", type=int, default=2)
    return parser.parse_args()


if __name__ == "__main__":
    main()
