"""Learns to read handwritten digits: asynchronous training with parameter servers.

Every job of the cluster runs this file; TF_CONFIG gives each job its role. The parameter server holds the weights.
The workers compute: each reads the weights, processes its own batch, and sends its update without waiting for the
others. The chief (RiseML's master) schedules the steps, saves checkpoints and tests the model.
Without TF_CONFIG the same code trains in this one process.
"""

import argparse
import os
import time

import numpy as np
import tensorflow as tf
from tabulate import tabulate

import digits

tf.get_logger().setLevel("ERROR")  # each checkpoint of a remote model logs a warning about retracing


def main():
    args = parse_arguments()
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type in ("ps", "worker"):
        return serve(resolver)
    if resolver.task_type:
        strategy = tf.distribute.ParameterServerStrategy(resolver)
        return train(args, strategy, tf.distribute.coordinator.ClusterCoordinator(strategy))
    return train(args, tf.distribute.get_strategy(), SingleProcess())


def serve(resolver):
    """Run a ps or a worker: execute the requests of the chief until the process is stopped."""
    print(f"{resolver.task_type} {resolver.task_id} is ready")
    server = tf.distribute.Server(resolver.cluster_spec(), resolver.task_type, resolver.task_id)
    server.join()


class SingleProcess:
    """The methods of a ClusterCoordinator that `train` calls, for one process."""

    def create_per_worker_dataset(self, dataset_fn):
        return dataset_fn()

    def schedule(self, fn, args):
        return fn(*args)

    def fetch(self, values):
        return tf.nest.map_structure(lambda value: value.numpy(), values)

    def join(self):
        pass


def train(args, strategy, coordinator):
    train_data, (test_images, test_labels) = digits.load(args.data)
    with strategy.scope():
        model = build_model()
        optimizer = tf.keras.optimizers.SGD(args.learning_rate, momentum=0.9)
        optimizer.build(model.trainable_variables)

    def read_data():
        # 4,000 images are few enough to be part of the graph; for more, each worker would read files here.
        dataset = tf.data.Dataset.from_tensor_slices(train_data)
        return dataset.shuffle(4000).repeat().batch(args.batch_size).prefetch(2)

    @tf.function
    def step(batches):
        def update(images, labels):
            with tf.GradientTape() as tape:
                loss = loss_of(model(images, training=True), labels)
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply(gradients, model.trainable_variables)
            return loss

        return strategy.run(update, args=next(batches))

    batches = iter(coordinator.create_per_worker_dataset(read_data))
    finished = tf.Variable(0, dtype=tf.int64)  # epochs
    manager = tf.train.CheckpointManager(
        tf.train.Checkpoint(model=model, optimizer=optimizer, finished=finished),
        os.path.join(args.output, "checkpoints"),
        max_to_keep=3,
    )
    if manager.restore_or_initialize():
        print(f"continuing after epoch {finished.numpy()}, from {manager.latest_checkpoint}")

    summaries = tf.summary.create_file_writer(os.path.join(args.output, "summaries"))
    for epoch in range(finished.numpy() + 1, args.epochs + 1):
        started = time.time()
        losses = [coordinator.schedule(step, args=(batches,)) for _ in range(4000 // args.batch_size)]
        coordinator.join()
        loss = np.mean(coordinator.fetch(losses))
        print(f"epoch {epoch}/{args.epochs}: loss {loss:.4f}, {time.time() - started:.1f} s")
        with summaries.as_default(step=epoch):
            tf.summary.scalar("loss", loss)
        finished.assign(epoch)
        manager.save()

    guesses = np.argmax(model(test_images), axis=1)
    report(guesses, test_labels)
    return locals()


def build_model():
    return tf.keras.Sequential(
        [
            tf.keras.Input((28, 28, 1)),
            tf.keras.layers.Rescaling(1 / 255),
            tf.keras.layers.Conv2D(16, 5, activation="relu"),
            tf.keras.layers.MaxPooling2D(),
            tf.keras.layers.Conv2D(32, 5, activation="relu"),
            tf.keras.layers.MaxPooling2D(),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(10),
        ]
    )


def loss_of(logits, labels):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))


def report(guesses, labels):
    rows = [(digit, np.mean(guesses[labels == digit] == digit)) for digit in range(10)]
    print(tabulate(rows, headers=("digit", "accuracy"), floatfmt=".3f"))
    print(f"test accuracy: {np.mean(guesses == labels):.4f}")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="/data/digits")
    parser.add_argument("--output", default=os.environ.get("OUTPUT_DIR", "output"))
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--learning-rate", type=float, default=0.02)
    return parser.parse_args()


if __name__ == "__main__":
    # Keep all variables until the process exits: TensorFlow would take seconds to free the remote functions.
    everything = main()
