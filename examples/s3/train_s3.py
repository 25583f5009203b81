"""Trains a softmax model on the digits of {{data_dir}}/digits, and writes it into OUTPUT_DIR, which riseml saves.

For TensorBoard, the accuracy of each epoch goes into logs/<experiment> of a bucket: every two minutes, when the writer
flushes, and at the end. The keys of the bucket come from `train.store`.
"""

import argparse
import gzip
import os
import time

import numpy as np
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

EPOCHS = 20
BATCH = 50


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--logs", required=True, help="the bucket of the logs")
    parser.add_argument("--lr", type=float, required=True)
    options = parser.parse_args()
    images, labels = load_digits(options.data)
    weights = np.zeros((images.shape[1], 10))
    random = np.random.default_rng(5)
    logs = EventFileWriter(f"s3://{options.logs}/logs/{os.environ['EXPERIMENT_ID']}")
    for epoch in range(1, EPOCHS + 1):
        for batch in np.split(random.permutation(4000), 4000 // BATCH):
            weights += options.lr * images[batch].T @ find_errors(weights, images[batch], labels[batch]) / BATCH
        accuracy = float((np.argmax(images[4000:] @ weights, axis=1) == labels[4000:]).mean())
        value = Summary.Value(tag="accuracy", simple_value=accuracy)
        logs.add_event(Event(step=epoch, wall_time=time.time(), summary=Summary(value=[value])))
        if epoch % 5 == 0:
            print(f"epoch {epoch}/{EPOCHS}: test accuracy {accuracy:.4f}")
    logs.close()
    save_model(weights)


def load_digits(folder: str) -> tuple[np.ndarray, np.ndarray]:
    with gzip.open(os.path.join(folder, "mnist_5k.csv.gz"), "rt") as file:
        rows = np.loadtxt(file, delimiter=",", dtype=np.uint8)
    np.random.default_rng(5).shuffle(rows)
    return np.hstack([rows[:, :-1] / 255, np.ones((len(rows), 1))]), rows[:, -1]


def find_errors(weights: np.ndarray, images: np.ndarray, labels: np.ndarray) -> np.ndarray:
    scores = np.exp(images @ weights)
    errors: np.ndarray = np.eye(10)[labels] - scores / scores.sum(axis=1, keepdims=True)
    return errors


def save_model(weights: np.ndarray) -> None:
    """Write the weights into OUTPUT_DIR. `save` in riseml.yml copies them into the bucket."""
    path = os.path.join(os.environ["OUTPUT_DIR"], "model.npy")
    np.save(path, weights)
    print(f"wrote {path}: {os.path.getsize(path):,} bytes")


if __name__ == "__main__":
    main()
