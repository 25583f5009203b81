"""Learns to read handwritten digits on a Ray cluster: each actor holds a part of the images, and computes gradients.

The driver runs on the head. The head has no CPUs for Ray's actors, so the actors run on the workers.
"""

import argparse
import gzip
import os
from pathlib import Path

import numpy as np
import ray

TRAINING_IMAGES = 4000
HIDDEN = 32
STEPS = 20  # in each epoch


class GradientWorker:
    """Holds a part of the training digits. Ray runs each instance as an actor, on a node with a free CPU."""

    def __init__(self, images, labels, seed):
        self.images, self.labels = images, labels
        self.random = np.random.default_rng(seed)

    def node(self):
        return ray.get_runtime_context().get_node_id()

    def gradient(self, weights):
        """Return the gradients and the loss of one batch of this actor's own images."""
        chosen = self.random.choice(len(self.images), len(self.images) // STEPS, replace=False)
        images, labels = self.images[chosen], self.labels[chosen]
        hidden, chances = forward(weights, images)
        errors = chances.copy()
        errors[np.arange(len(labels)), labels] -= 1
        errors /= len(labels)
        inner = (errors @ weights[1].T) * (hidden > 0)
        bias = np.ones((len(images), 1), np.float32)
        loss = -np.log(chances[np.arange(len(labels)), labels] + 1e-9).mean()
        return [np.hstack([images, bias]).T @ inner, hidden.T @ errors], float(loss)


def main():
    args = parse_arguments()
    images, labels = load_digits(args.data)
    ray.init(address="auto", log_to_driver=False)
    parts = np.array_split(np.arange(TRAINING_IMAGES), args.workers)
    actor = ray.remote(num_cpus=1)(GradientWorker)
    workers = [actor.remote(images[part], labels[part], seed) for seed, part in enumerate(parts)]
    nodes = ray.get([worker.node.remote() for worker in workers])  # waits until the workers have joined
    print(f"{len(workers)} workers on {len(set(nodes))} nodes, the driver on another one: {driver_is_apart(nodes)}")
    weights = make_weights()
    for epoch in range(1, args.epochs + 1):
        losses = []
        for _ in range(STEPS):
            shared = ray.put(weights)
            answers = ray.get([worker.gradient.remote(shared) for worker in workers])
            steps = [np.mean([gradients[at] for gradients, _ in answers], axis=0) for at in range(2)]
            weights = [matrix - args.lr * step for matrix, step in zip(weights, steps, strict=True)]
            losses += [loss for _, loss in answers]
        print(f"epoch {epoch}: loss {np.mean(losses):.4f}")
    _, chances = forward(weights, images[TRAINING_IMAGES:])
    accuracy = (chances.argmax(axis=1) == labels[TRAINING_IMAGES:]).mean()
    np.savez(Path(os.environ.get("OUTPUT_DIR", ".")) / "weights.npz", *weights)
    print(f"test accuracy: {accuracy:.4f}")


def driver_is_apart(nodes):
    return ray.get_runtime_context().get_node_id() not in nodes


def make_weights():
    random = np.random.default_rng(7)
    shapes = (785, HIDDEN), (HIDDEN, 10)
    return [random.normal(0, np.sqrt(2 / rows), (rows, columns)).astype(np.float32) for rows, columns in shapes]


def forward(weights, images):
    """Return the hidden layer, and the probability of each digit."""
    hidden = np.maximum(images @ weights[0][:-1] + weights[0][-1], 0)
    scores = hidden @ weights[1]
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return hidden, powers / powers.sum(axis=1, keepdims=True)


def load_digits(folder):
    """Return 5,000 images and labels in random order."""
    path = Path(folder) / "mnist_5k.csv.gz"
    if not path.exists():
        raise SystemExit(f"no digits at {path}: run `python3 ../ai-toaster/get_data.py` on the host of the data folder")
    with gzip.open(path) as file:
        rows = np.loadtxt(file, delimiter=",", dtype=np.uint8)
    np.random.default_rng(seed=5).shuffle(rows)
    return (rows[:, :-1] / 255).astype(np.float32), rows[:, -1].astype(np.int64)


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default="data/digits", help="folder with mnist_5k.csv.gz")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--lr", type=float, default=0.5)
    return parser.parse_args()


if __name__ == "__main__":
    main()
