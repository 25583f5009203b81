"""Learns to read digits in the style of TensorFlow 1: between-graph replication, asynchronous updates.

Every worker builds the same graph, with the variables on the parameter server and the computation on the worker, and
runs its own training loop. The chief (RiseML's master) is a worker that also initialises, saves and tests the model.
Without TF_CONFIG the same code trains in this one process.
"""

import argparse
import json
import os
import time

import numpy as np
import tensorflow.compat.v1 as tf

import digits

tf.disable_eager_execution()
tf.logging.set_verbosity(tf.logging.ERROR)


def main():
    args = parse_arguments()
    config = json.loads(os.environ.get("TF_CONFIG", "{}"))
    if not config:
        train(args, target="", device=None, is_chief=True, session_config=None)
        return
    cluster = tf.train.ClusterSpec(config["cluster"])
    role, index = config["task"]["type"], config["task"]["index"]
    # Without filters a session waits for every job of the cluster, so a late worker would wait forever for a chief that
    # has finished. A worker needs only the parameter servers.
    me = f"/job:{role}/task:{index}"
    session_config = tf.ConfigProto(device_filters=["/job:ps", me])
    server = tf.train.Server(cluster, role, index, config=session_config)
    if role == "ps":
        print(f"ps {index} is ready")
        server.join()
    device = tf.train.replica_device_setter(worker_device=me, cluster=cluster)
    train(args, server.target, device, role == "chief", session_config)


def train(args, target, device, is_chief, session_config):
    (train_images, train_labels), (test_images, test_labels) = digits.load(args.data)
    with tf.device(device):
        images, labels, loss, accuracy = build_model()
        global_step = tf.train.get_or_create_global_step()
        optimizer = tf.train.GradientDescentOptimizer(args.learning_rate)
        train_op = optimizer.minimize(loss, global_step=global_step)
    tf.summary.scalar("loss", loss)

    if not is_chief:
        wait_for_variables(target, session_config)
    session = tf.train.MonitoredTrainingSession(
        master=target,
        is_chief=is_chief,
        checkpoint_dir=os.path.join(args.output, "checkpoints"),
        save_checkpoint_steps=500,
        hooks=[tf.train.StopAtStepHook(last_step=args.steps)],
        chief_only_hooks=[TestAtTheEnd(accuracy, {images: test_images, labels: test_labels})],
        config=session_config,
    )
    random = np.random.default_rng()
    mine, started = 0, time.time()
    with session:
        while not session.should_stop():
            batch = random.integers(len(train_images), size=args.batch_size)
            feed = {images: train_images[batch], labels: train_labels[batch]}
            _, cost, step = session.run((train_op, loss, global_step), feed)
            mine += 1
            if mine % 100 == 0:
                print(f"step {step}: loss {cost:.4f}")
    print(f"did {mine} of {args.steps} steps in {time.time() - started:.1f} s")


def build_model():
    images = tf.placeholder(tf.uint8, (None, 28, 28, 1), name="images")
    labels = tf.placeholder(tf.int64, (None,), name="labels")
    initializer = tf.glorot_uniform_initializer()
    w1 = tf.get_variable("w1", (784, 100), initializer=initializer)
    b1 = tf.get_variable("b1", (100,), initializer=tf.zeros_initializer())
    w2 = tf.get_variable("w2", (100, 10), initializer=initializer)
    b2 = tf.get_variable("b2", (10,), initializer=tf.zeros_initializer())

    flat = tf.reshape(tf.cast(images, tf.float32) / 255, (-1, 784))
    logits = tf.matmul(tf.nn.relu(tf.matmul(flat, w1) + b1), w2) + b2
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), labels), tf.float32))
    return images, labels, loss, accuracy


def wait_for_variables(target, session_config):
    """Wait until the chief has initialised the variables. MonitoredTrainingSession would check only every 30 s."""
    uninitialized = tf.report_uninitialized_variables()
    with tf.Session(target, config=session_config) as session:
        while session.run(uninitialized).size:
            time.sleep(0.5)


class TestAtTheEnd(tf.train.SessionRunHook):
    def __init__(self, accuracy, feed):
        self.accuracy, self.feed = accuracy, feed

    def end(self, session):
        print(f"test accuracy: {session.run(self.accuracy, self.feed):.4f}")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="/data/digits")
    parser.add_argument("--output", default=os.environ.get("OUTPUT_DIR", "output"))
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--batch-size", type=int, default=50)
    parser.add_argument("--learning-rate", type=float, default=0.1)
    return parser.parse_args()


if __name__ == "__main__":
    main()
