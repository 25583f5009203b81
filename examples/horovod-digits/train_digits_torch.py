"""Learns to read handwritten digits with Horovod and PyTorch: one process or many.

The processes find each other with the variables that riseml sets. Each takes its own part of each batch; Horovod
averages the gradients. Rank 0 saves checkpoints, so that another attempt continues after the last one.
"""

import argparse
import gzip
import os
from pathlib import Path

import horovod.torch as hvd
import numpy as np
import torch
from torch import nn

TRAINING_IMAGES = 4000
BATCH = 240  # of all processes together


def main():
    args = parse_arguments()
    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    device = torch.device("cuda", hvd.local_rank()) if torch.cuda.is_available() else torch.device("cpu")
    images, labels = load_digits(args.data, device)

    torch.manual_seed(7)
    model = nn.Sequential(nn.Linear(784, 100), nn.ReLU(), nn.Linear(100, 10)).to(device)
    adam = torch.optim.Adam(model.parameters(), lr=args.lr)
    checkpoint = Path(os.environ.get("OUTPUT_DIR", ".")) / "checkpoint.pt"
    first = restore(checkpoint, model, adam, device)
    # All processes begin with the weights of rank 0.
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(adam, root_rank=0)
    optimizer = hvd.DistributedOptimizer(adam, named_parameters=model.named_parameters())
    if rank == 0:
        print(f"{size} processes, epoch {first} to {args.epochs}")
    for epoch in range(first, args.epochs + 1):
        loss = train_epoch(model, optimizer, images[:TRAINING_IMAGES], labels[:TRAINING_IMAGES], epoch)
        if rank == 0:
            save(checkpoint, model, adam, epoch)
            print(f"epoch {epoch}: loss {loss:.4f}")
    with torch.no_grad():
        found = model(images[TRAINING_IMAGES:]).argmax(1)
    accuracy = (found == labels[TRAINING_IMAGES:]).float().mean().item()
    print(f"rank {rank} of {size}: test accuracy: {accuracy:.4f}")


def train_epoch(model, optimizer, images, labels, epoch):
    """Train on every batch once, and return the mean loss of all processes in the last batch.

    The order of the images depends on the epoch alone.
    """
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(epoch))
    for start in range(0, len(order) - BATCH + 1, BATCH):
        mine = order[start + hvd.rank() : start + BATCH : hvd.size()]
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images[mine]), labels[mine])
        loss.backward()
        optimizer.step()
    return hvd.allreduce(loss.detach(), name="loss").item()


def save(path, model, adam, epoch):
    """Replace the file with a complete one: the process may be killed at any moment."""
    state = {"model": model.state_dict(), "optimizer": adam.state_dict(), "epoch": epoch}
    torch.save(state, path.with_suffix(".new"))
    path.with_suffix(".new").replace(path)


def restore(path, model, adam, device):
    """Load the checkpoint, if there is one, and return the first epoch to train."""
    if not path.exists():
        return 1
    state = torch.load(path, map_location=device)
    model.load_state_dict(state["model"])
    adam.load_state_dict(state["optimizer"])
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
