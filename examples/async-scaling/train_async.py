"""Trains a small sigmoid network asynchronously with a small learning rate; every worker runs the same number of steps.

With more workers the network is trained with more steps in about the same time, and reaches a higher accuracy. The goal
is to see how training scales, not a high accuracy. The graph is that of a well-known example for TensorFlow 0.8.
"""

import argparse
import gzip
import json
import os
import time

import numpy as np
import tensorflow.compat.v1 as tf

import riseml

BATCH = 100
RATE = 0.001
TRAINING = 4000  # images; the other 1,000 are the test

tf.disable_eager_execution()
tf.logging.set_verbosity(tf.logging.ERROR)


def main():
    args = parse_arguments()
    config = json.loads(os.environ["TF_CONFIG"])
    cluster = tf.train.ClusterSpec(config["cluster"])
    role, index = config["task"]["type"], config["task"]["index"]
    me = f"/job:{role}/task:{index}"
    session_config = tf.ConfigProto(
        device_filters=["/job:ps", me], intra_op_parallelism_threads=1, inter_op_parallelism_threads=2
    )
    server = tf.train.Server(cluster, role, index, config=session_config)
    if role == "ps":
        server.join()
    with tf.device(tf.train.replica_device_setter(worker_device=me, cluster=cluster)):
        train(args, server.target, role == "chief", session_config)


def train(args, target, is_chief, session_config):
    images, labels = load_digits(args.data)
    x, y, cost, accuracy = build_model()
    global_step = tf.train.get_or_create_global_step()
    train_op = tf.train.GradientDescentOptimizer(RATE).minimize(cost, global_step=global_step)
    if not is_chief:
        wait_for_variables(target, session_config)
    session = tf.train.MonitoredTrainingSession(
        target, is_chief, config=session_config, save_checkpoint_secs=None, save_summaries_steps=None
    )
    random = np.random.default_rng()
    began = time.time()
    with session:
        for epoch in range(1, args.epochs + 1):
            order = random.permutation(TRAINING)
            for batch in order.reshape(-1, BATCH):
                feed = {x: images[batch], y: labels[batch]}
                _, loss, step = session.run((train_op, cost, global_step), feed)
            if is_chief and epoch % 25 == 0:  # one process reports for the whole training
                right = session.run(accuracy, {x: images[TRAINING:], y: labels[TRAINING:]})
                rate = BATCH * float(step) / (time.time() - began)
                riseml.report(step=step, loss=loss, accuracy=right, examples_per_second=rate)
                print(f"epoch {epoch}: step {step}, loss {loss:.4f}, test accuracy {right:.4f}")


def build_model():
    tf.set_random_seed(1)
    x = tf.placeholder(tf.float32, (None, 784))
    y = tf.placeholder(tf.int64, (None,))
    w1 = tf.get_variable("w1", initializer=tf.random_normal([784, 100]))
    w2 = tf.get_variable("w2", initializer=tf.random_normal([100, 10]))
    b1 = tf.get_variable("b1", initializer=tf.zeros([100]))
    b2 = tf.get_variable("b2", initializer=tf.zeros([10]))
    logits = tf.matmul(tf.sigmoid(tf.matmul(x, w1) + b1), w2) + b2
    cost = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), y), tf.float32))
    return x, y, cost, accuracy


def wait_for_variables(target, session_config):
    """Wait until the chief has initialised the variables. MonitoredTrainingSession would check only every 30 s."""
    uninitialized = tf.report_uninitialized_variables()
    with tf.Session(target, config=session_config) as session:
        while session.run(uninitialized).size:
            time.sleep(0.2)


def load_digits(folder):
    """Return 5,000 images as rows of 784 values from 0 to 1, and their labels, in the same order in every process."""
    path = os.path.join(folder, "mnist_5k.csv.gz")
    if not os.path.exists(path):
        raise SystemExit(f"no digits at {path}: run `python3 ../ai-toaster/get_data.py` on the host of the data folder")
    with gzip.open(path, "rt") as file:
        rows = np.loadtxt(file, delimiter=",", dtype=np.uint8)
    np.random.default_rng(seed=5).shuffle(rows)
    return rows[:, :-1].astype(np.float32) / 255, rows[:, -1].astype(np.int64)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="/data/digits")
    parser.add_argument("--epochs", type=int, default=275)
    return parser.parse_args()


if __name__ == "__main__":
    main()
