"""Learns to read handwritten digits with DistributedDataParallel: one process or many, on CPUs or GPUs.

`python train_digits.py` is one process in each container. `torchrun train_digits.py` starts as many as riseml.yml says.
The processes find each other with the variables that riseml sets. Rank 0 saves checkpoints, so that another attempt
continues after the last one.
"""

import argparse
import gzip
import os
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

TRAINING_IMAGES = 4000
BATCH = 240  # of all processes together


def main():
    args = parse_arguments()
    on_gpu = torch.cuda.is_available()
    dist.init_process_group("nccl" if on_gpu else "gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if on_gpu else torch.device("cpu")
    images, labels = load_digits(args.data, device)

    torch.manual_seed(7)
    model = DistributedDataParallel(make_model().to(device))
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    checkpoint = Path(os.environ.get("OUTPUT_DIR", ".")) / "checkpoint.pt"
    first = restore(checkpoint, model, optimizer, device)
    if rank == 0:
        print(f"{size} processes, epoch {first} to {args.epochs}")
    for epoch in range(first, args.epochs + 1):
        loss = train_epoch(model, optimizer, images[:TRAINING_IMAGES], labels[:TRAINING_IMAGES], epoch)
        if rank == 0:
            save(checkpoint, model, optimizer, epoch)
            print(f"epoch {epoch}: loss {loss:.4f}")
    accuracy = test(model, images[TRAINING_IMAGES:], labels[TRAINING_IMAGES:])
    print(f"rank {rank} of {size}: test accuracy: {accuracy:.4f}")
    dist.barrier()
    dist.destroy_process_group()


def make_model():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 100), nn.ReLU(), nn.Linear(100, 10))


def train_epoch(model, optimizer, images, labels, epoch):
    """Train on this process's part of each batch. The order of the images depends on the epoch alone."""
    rank, size = dist.get_rank(), dist.get_world_size()
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(epoch))
    for start in range(0, len(order) - BATCH + 1, BATCH):
        mine = order[start + rank : start + BATCH : size]
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images[mine]), labels[mine])
        loss.backward()
        optimizer.step()
    return loss.item()


def test(model, images, labels):
    with torch.no_grad():
        return (model(images).argmax(1) == labels).float().mean().item()


def save(path, model, optimizer, epoch):
    """Replace the file with a complete one: the process may be killed at any moment."""
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
    torch.save(state, path.with_suffix(".new"))
    path.with_suffix(".new").replace(path)


def restore(path, model, optimizer, device):
    """Load the checkpoint, if there is one, and return the first epoch to train."""
    if not path.exists():
        return 1
    state = torch.load(path, map_location=device)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["epoch"] + 1


def load_digits(folder, device):
    """Return 5,000 images and labels, in the same order in every process."""
    path = Path(folder) / "mnist_5k.csv.gz"
    if not path.exists():
        raise SystemExit(f"no digits at {path}: run `python3 ../ai-toaster/get_data.py` on the host of the data folder")
    with gzip.open(path) as file:
        rows = np.loadtxt(file, delimiter=",", dtype=np.uint8)
    np.random.default_rng(seed=5).shuffle(rows)
    images = torch.tensor(rows[:, :-1], dtype=torch.float32, device=device) / 255
    return images, torch.tensor(rows[:, -1].astype(np.int64), device=device)


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default="data/digits", help="folder with mnist_5k.csv.gz")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--lr", type=float, default=0.002)
    return parser.parse_args()


if __name__ == "__main__":
    main()
