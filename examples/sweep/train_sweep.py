"""Trains a small network in NumPy to read digits, and reports its accuracy after each epoch.

python train_sweep.py --data ~/.riseml/data/digits --lr 0.1 --units 64 --batch 32 --momentum 0.5
"""

import argparse
import gzip
import os

import numpy as np

import riseml  # every job has this module


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True, help="folder with mnist_5k.csv.gz")
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--units", type=int, default=32)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--momentum", type=float, default=0.0)
    parser.add_argument("--epochs", type=int, default=27)
    args = parser.parse_args()
    images, labels = load(args.data)
    random = np.random.default_rng(seed=1)
    weights = [
        random.normal(0, np.sqrt(2 / 784), (784, args.units)).astype(np.float32),
        np.zeros(args.units, np.float32),
        random.normal(0, np.sqrt(2 / args.units), (args.units, 10)).astype(np.float32),
        np.zeros(10, np.float32),
    ]
    speeds = [np.zeros_like(one) for one in weights]
    for epoch in range(1, args.epochs + 1):
        order = random.permutation(4000)
        for begin in range(0, 4000, args.batch):
            some = order[begin : begin + args.batch]
            slopes = find_slopes(weights, images[some], labels[some])
            for weight, speed, slope in zip(weights, speeds, slopes, strict=True):
                speed *= args.momentum
                speed -= args.lr * slope
                weight += speed
        accuracy = float(np.mean(guess(weights, images[4000:])[1].argmax(axis=1) == labels[4000:]))
        print(f"epoch {epoch}: test accuracy {accuracy:.4f}", flush=True)
        riseml.report(step=epoch, accuracy=accuracy)


def load(folder):
    """Return 5,000 images with values from 0 to 1, and their labels. The first 4,000 are for training."""
    path = os.path.join(folder, "mnist_5k.csv.gz")
    if not os.path.exists(path):
        raise SystemExit(f"no digits at {path}: run `python3 ../ai-toaster/get_data.py` on the host of the data folder")
    with gzip.open(path, "rt") as lines:
        rows = np.array([np.fromstring(line, np.uint8, sep=",") for line in lines])
    np.random.default_rng(seed=5).shuffle(rows)
    return rows[:, :-1].astype(np.float32) / 255, rows[:, -1].astype(np.int64)


def guess(weights, images):
    """Return the hidden layer, and a score for each digit."""
    hidden = np.maximum(images @ weights[0] + weights[1], 0)
    return hidden, hidden @ weights[2] + weights[3]


def find_slopes(weights, images, labels):
    """Return the gradient of the loss for each weight."""
    hidden, scores = guess(weights, images)
    chances = np.exp(scores - scores.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    chances[np.arange(len(labels)), labels] -= 1
    chances /= len(labels)
    back = (chances @ weights[2].T) * (hidden > 0)
    return images.T @ back, back.sum(axis=0), hidden.T @ chances, chances.sum(axis=0)


if __name__ == "__main__":
    np.seterr(all="ignore")  # a large learning rate may overflow: that trial has a low accuracy
    main()
