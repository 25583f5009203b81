"""Learns to read digits with MultiWorkerMirroredStrategy: synchronous training, no parameter server.

Every worker holds the whole model and computes on its share of each batch; all apply the same update (all-reduce).
Worker 0 is the chief: the others do the same work, but only the files of the chief are kept.
Without TF_CONFIG the same code trains in this one process.
"""

import argparse
import os
import tempfile

import tensorflow as tf

import digits


def main():
    args = parse_arguments()
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    strategy = tf.distribute.MultiWorkerMirroredStrategy()  # before all operations: it connects the workers
    is_chief = resolver.task_id in (None, 0)

    train_data, test_data = digits.load(args.data)
    workers = strategy.num_replicas_in_sync
    dataset = tf.data.Dataset.from_tensor_slices(train_data).shuffle(4000, seed=5).repeat()
    dataset = dataset.batch(args.batch_size * workers).with_options(share_each_batch())
    with strategy.scope():
        model = build_model()
        model.compile(
            optimizer=tf.keras.optimizers.Adam(args.learning_rate),
            loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        )

    # All workers must save at the same time. All but the chief save to a temporary folder.
    output = args.output if is_chief else tempfile.mkdtemp()
    callbacks = [
        tf.keras.callbacks.LambdaCallback(
            on_epoch_end=lambda epoch, logs: print(f"epoch {epoch + 1}/{args.epochs}: loss {logs['loss']:.4f}")
        ),
        tf.keras.callbacks.BackupAndRestore(os.path.join(args.output, "backup"), delete_checkpoint=False),
        tf.keras.callbacks.ModelCheckpoint(os.path.join(output, "checkpoints", "model"), save_weights_only=True),
        tf.keras.callbacks.TensorBoard(os.path.join(output, "summaries")),
    ]
    steps = 4000 // (args.batch_size * workers)
    model.fit(dataset, epochs=args.epochs, steps_per_epoch=steps, callbacks=callbacks, verbose=0)

    images, labels = test_data
    right = tf.equal(tf.argmax(model(images), axis=1), labels)
    print(f"test accuracy: {tf.reduce_mean(tf.cast(right, tf.float32)):.4f}")


def share_each_batch():
    """Return options with which every worker reads all data and takes its part of each batch."""
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    return options


def build_model():
    return tf.keras.Sequential(
        [
            tf.keras.layers.Rescaling(1 / 255, input_shape=(28, 28, 1)),
            tf.keras.layers.Conv2D(16, 5, activation="relu"),
            tf.keras.layers.MaxPooling2D(),
            tf.keras.layers.Conv2D(32, 5, activation="relu"),
            tf.keras.layers.MaxPooling2D(),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(10),
        ]
    )


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="/data/digits")
    parser.add_argument("--output", default=os.environ.get("OUTPUT_DIR", "output"))
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=32, help="per worker")
    parser.add_argument("--learning-rate", type=float, default=0.002)
    return parser.parse_args()


if __name__ == "__main__":
    main()
