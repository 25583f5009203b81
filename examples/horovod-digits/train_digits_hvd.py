"""Learns to read handwritten digits with Horovod and Keras: one process or many.

The processes find each other with the variables that riseml sets. Each takes its own part of the digits; Horovod
averages the gradients. Rank 0 saves checkpoints, so that another attempt continues after the last one.
"""

import argparse
import os
from pathlib import Path

import horovod.tensorflow.keras as hvd
import numpy as np
import tensorflow as tf

TRAINING_IMAGES = 4000
BATCH = 240  # of all processes together


def main():
    args = parse_arguments()
    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        tf.config.set_visible_devices(gpus[hvd.local_rank() % len(gpus)], "GPU")
    images, labels = load_digits(args.data)
    mine = slice(rank, TRAINING_IMAGES, size)

    model = make_model(args.lr)
    checkpoint = Path(os.environ.get("OUTPUT_DIR", ".")) / "checkpoint.weights.h5"
    epoch_file = checkpoint.with_name("epoch.txt")
    first = int(epoch_file.read_text()) if epoch_file.exists() else 0
    if first:
        model.load_weights(checkpoint)
    if rank == 0:
        print(f"{size} processes, epoch {first + 1} to {args.epochs}")
    # All processes begin with the weights of rank 0.
    callbacks = [hvd.callbacks.BroadcastGlobalVariablesCallback(0), hvd.callbacks.MetricAverageCallback()]
    if rank == 0:
        callbacks.append(tf.keras.callbacks.LambdaCallback(on_epoch_end=lambda *end: save(model, checkpoint, *end)))
    batch = max(1, BATCH // size)
    model.fit(images[mine], labels[mine], batch, args.epochs, initial_epoch=first, callbacks=callbacks, verbose=0)
    found = model(images[TRAINING_IMAGES:], training=False).numpy().argmax(axis=1)
    print(f"rank {rank} of {size}: test accuracy: {(found == labels[TRAINING_IMAGES:]).mean():.4f}")


def make_model(lr):
    tf.keras.utils.set_random_seed(7)
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Input((784,)),
            tf.keras.layers.Dense(100, activation="relu"),
            tf.keras.layers.Dense(10),
        ]
    )
    optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.Adam(lr))
    model.compile(optimizer, tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    return model


def save(model, path, epoch, logs):
    """Replace each file with a complete one: the process may be killed at any moment."""
    print(f"epoch {epoch + 1}: loss {logs['loss']:.4f}")
    new = path.with_name("new.weights.h5")
    model.save_weights(new)
    new.replace(path)
    path.with_name("new.txt").write_text(str(epoch + 1))
    path.with_name("new.txt").replace(path.with_name("epoch.txt"))


def load_digits(folder):
    """Return 5,000 images and labels, in the same order in every process."""
    path = Path(folder) / "mnist_5k.csv.gz"
    if not path.exists():
        raise SystemExit(f"no digits at {path}: run `python3 ../ai-toaster/get_data.py` on the host of the data folder")
    rows = np.loadtxt(path, delimiter=",", dtype=np.uint8)
    np.random.default_rng(seed=5).shuffle(rows)
    return rows[:, :-1].astype(np.float32) / 255, rows[:, -1].astype(np.int64)


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default="data/digits", help="folder with mnist_5k.csv.gz")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--lr", type=float, default=0.002)
    return parser.parse_args()


if __name__ == "__main__":
    main()
