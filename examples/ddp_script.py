"""A textbook DistributedDataParallel program: `torchrun --nproc-per-node 2 examples/ddp_script.py`, or a job.

Only the lines that name `rankzero` or `RANKZERO_RUN_DIR` are ours: outside a run of RankZero they change nothing.
"""

import argparse
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

import rankzero


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch", type=int, default=32, help="samples per rank")
    # What lies in a run's own directory can be downloaded, and is in no other run's way.
    home = Path(os.environ.get("RANKZERO_RUN_DIR", "."))
    parser.add_argument("--output", type=Path, default=home / "ddp_script_checkpoints")
    options = parser.parse_args()

    on_gpu = torch.cuda.is_available()
    dist.init_process_group("nccl" if on_gpu else "gloo")
    rank, local_rank = dist.get_rank(), int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local_rank) if on_gpu else torch.device("cpu")

    torch.manual_seed(0)
    points = torch.rand(2048, 2) * 2 - 1
    inside = (points.norm(dim=1) < 0.8).long()  # which points lie in a circle
    dataset = TensorDataset(points, inside)
    sampler = DistributedSampler(dataset, seed=0)
    loader = DataLoader(dataset, batch_size=options.batch, sampler=sampler)
    model = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 2)).to(device)
    model = DistributedDataParallel(model, device_ids=[local_rank] if on_gpu else None)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    completed = step = 0
    if saved := rankzero.resume_path():
        state = torch.load(saved, map_location=device, weights_only=True)
        model.module.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        completed, step = state["epoch"], state["step"]
    for epoch in range(completed + 1, options.epochs + 1):
        sampler.set_epoch(epoch)
        for batch, target in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(batch.to(device)), target.to(device))
            loss.backward()
            optimizer.step()
            step += 1
            rankzero.report(step=step, epoch=epoch, loss=loss)
        if rank == 0:
            options.output.mkdir(exist_ok=True)
            path = options.output / f"epoch-{epoch}.pt"
            state = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save(state | {"epoch": epoch, "step": step}, path)
            rankzero.checkpoint(path, step=step, epoch=epoch, loss=loss)
            print(f"epoch {epoch}: loss {loss.item():.3f}, saved {path}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
