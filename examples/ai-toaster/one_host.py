"""Learns to read digits with the strategies of TensorFlow for one machine, one after the other.

- `one-device`: OneDeviceStrategy puts the variables and all work on one device.
- `mirrored`: MirroredStrategy keeps a copy of the variables on each device; all apply the same update (all-reduce).
- `central-storage`: CentralStorageStrategy keeps the variables in the memory of the machine; the devices compute.

The devices are the GPUs. Without GPUs, the processor counts as two devices, so that the code is the same.
"""

import argparse

import tensorflow as tf

import digits
from mirrored import build_model, share_each_batch


def main():
    args = parse_arguments()
    devices = find_devices()
    for name in args.strategy:
        accuracy = train(args, make_strategy(name, devices))
        print(f"{name}: test accuracy: {accuracy:.4f}")


def find_devices():
    """Return the names of all GPUs, or of two halves of the processor when there is no GPU."""
    kind = "GPU" if tf.config.list_physical_devices("GPU") else "CPU"
    if kind == "CPU":  # possible only before TensorFlow initialises its devices
        (processor,) = tf.config.list_physical_devices("CPU")
        tf.config.set_logical_device_configuration(processor, [tf.config.LogicalDeviceConfiguration()] * 2)
    return [device.name for device in tf.config.list_logical_devices(kind)]


def make_strategy(name, devices):
    if name == "one-device":
        return tf.distribute.OneDeviceStrategy(devices[0])
    if name == "mirrored":
        return tf.distribute.MirroredStrategy(devices)
    return tf.distribute.experimental.CentralStorageStrategy(devices, "/cpu:0")


def train(args, strategy):
    """Train with a strategy, and return the accuracy on digits that the model has not seen."""
    train_data, (images, labels) = digits.load(args.data)
    batch = args.batch_size * strategy.num_replicas_in_sync
    dataset = tf.data.Dataset.from_tensor_slices(train_data).shuffle(4000, seed=5).repeat()
    dataset = dataset.batch(batch, drop_remainder=True).with_options(share_each_batch())
    with strategy.scope():
        model = build_model()
        model.compile(
            optimizer=tf.keras.optimizers.Adam(args.learning_rate),
            loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        )
    history = model.fit(dataset, epochs=args.epochs, steps_per_epoch=4000 // batch, verbose=0)
    print(f"{strategy.num_replicas_in_sync} devices, loss {history.history['loss'][-1]:.4f}")
    right = tf.equal(tf.argmax(model(images), axis=1), labels)
    return tf.reduce_mean(tf.cast(right, tf.float32)).numpy()


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="/data/digits")
    parser.add_argument("--strategy", nargs="+", default=STRATEGIES, choices=STRATEGIES)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32, help="per device")
    parser.add_argument("--learning-rate", type=float, default=0.002)
    return parser.parse_args()


STRATEGIES = ["one-device", "mirrored", "central-storage"]

if __name__ == "__main__":
    main()
