"""Learns to read handwritten digits with JAX: one process or many, on CPUs or GPUs.

`jax.distributed.initialize()` finds the other processes with the variables that riseml sets. Then all devices of all
processes form one mesh: JAX splits each batch among them and averages the gradients. Process 0 saves checkpoints, so
that another attempt continues after the last one.
"""

import argparse
import gzip
import os
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

TRAINING_IMAGES = 4000
BATCH = 240  # of all processes together


def main():
    args = parse_arguments()
    jax.distributed.initialize()
    rank, size = jax.process_index(), jax.process_count()
    mesh = jax.make_mesh((jax.device_count(),), ("data",))
    split = NamedSharding(mesh, PartitionSpec("data"))
    images, labels = load_digits(args.data)

    checkpoint = Path(os.environ.get("OUTPUT_DIR", ".")) / "checkpoint.npz"
    first, state = restore(checkpoint)
    state = jax.device_put(state, NamedSharding(mesh, PartitionSpec()))
    if rank == 0:
        print(f"{size} processes, {jax.device_count()} devices, epoch {first} to {args.epochs}")
    for epoch in range(first, args.epochs + 1):
        order = np.random.default_rng(seed=epoch).permutation(TRAINING_IMAGES)
        for start in range(0, len(order) - BATCH + 1, BATCH):
            mine = order[start + rank : start + BATCH : size]
            batch = [jax.make_array_from_process_local_data(split, part[mine]) for part in (images, labels)]
            state, loss = train_step(state, *batch, args.lr)
        if rank == 0:
            save(checkpoint, epoch, state)
            print(f"epoch {epoch}: loss {loss:.4f}")
    weights = jax.tree.map(np.asarray, state["weights"])
    found = predict(weights, images[TRAINING_IMAGES:]).argmax(axis=1)
    accuracy = (found == labels[TRAINING_IMAGES:]).mean()
    print(f"rank {rank} of {size}: test accuracy: {accuracy:.4f}")


def make_state():
    """Return the weights of a network with one hidden layer, and Adam's averages for each weight."""
    rng = np.random.default_rng(seed=7)
    shapes = {"w1": (784, 100), "b1": (100,), "w2": (100, 10), "b2": (10,)}
    weights = {
        name: (rng.normal(size=shape) / np.sqrt(shape[0]) * (len(shape) > 1)).astype(np.float32)
        for name, shape in shapes.items()
    }
    zeros = jax.tree.map(np.zeros_like, weights)
    return {"weights": weights, "mean": zeros, "variance": zeros, "step": np.float32(0)}


def predict(weights, images):
    hidden = jax.nn.relu(images @ weights["w1"] + weights["b1"])
    return hidden @ weights["w2"] + weights["b2"]


def mean_loss(weights, images, labels):
    return -jnp.take_along_axis(jax.nn.log_softmax(predict(weights, images)), labels[:, None], axis=1).mean()


@jax.jit
def train_step(state, images, labels, lr):
    """Return the state after one step of Adam, and the loss over the whole batch."""
    loss, gradients = jax.value_and_grad(mean_loss)(state["weights"], images, labels)
    step = state["step"] + 1
    mean = jax.tree.map(lambda old, new: 0.9 * old + 0.1 * new, state["mean"], gradients)
    variance = jax.tree.map(lambda old, new: 0.999 * old + 0.001 * new**2, state["variance"], gradients)
    rate = lr * jnp.sqrt(1 - 0.999**step) / (1 - 0.9**step)
    weights = jax.tree.map(lambda w, m, v: w - rate * m / (jnp.sqrt(v) + 1e-8), state["weights"], mean, variance)
    return {"weights": weights, "mean": mean, "variance": variance, "step": step}, loss


def save(path, epoch, state):
    """Replace the file with a complete one: the process may be killed at any moment."""
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(state)]
    with path.with_suffix(".new").open("wb") as file:
        np.savez(file, np.int64(epoch), *leaves)
    path.with_suffix(".new").replace(path)


def restore(path):
    """Return the first epoch to train, and the state from the checkpoint, or a new one."""
    state = make_state()
    if not path.exists():
        return 1, state
    with np.load(path) as file:
        epoch, *leaves = (file[name] for name in file.files)
    return int(epoch) + 1, jax.tree.unflatten(jax.tree.structure(state), leaves)


def load_digits(folder):
    """Return 5,000 images and labels, in the same order in every process."""
    path = Path(folder) / "mnist_5k.csv.gz"
    if not path.exists():
        raise SystemExit(f"no digits at {path}: run `python3 ../ai-toaster/get_data.py` on the host of the data folder")
    with gzip.open(path) as file:
        rows = np.loadtxt(file, delimiter=",", dtype=np.uint8)
    np.random.default_rng(seed=5).shuffle(rows)
    return rows[:, :-1].astype(np.float32) / 255, rows[:, -1].astype(np.int32)


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default="data/digits", help="folder with mnist_5k.csv.gz")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--lr", type=float, default=0.002)
    return parser.parse_args()


if __name__ == "__main__":
    main()
