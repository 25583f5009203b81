"""Learns to read digits with tf.estimator of TensorFlow 2.15, the last version that has it.

`train_and_evaluate` reads TF_CONFIG: chief and workers train asynchronously with the variables on the parameter server,
and the evaluator tests each checkpoint that the chief saves, the last one included.
Each worker reads its own part of the data. RiseML counts the chief (its master) as worker 0 in WORKER_INDEX.
"""

import argparse
import os

import tensorflow as tf

import digits

tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
WORKER, WORKERS = int(os.environ.get("WORKER_INDEX", "0")), int(os.environ.get("TOTAL_WORKERS", "1"))


def main():
    args = parse_arguments()
    train_data, test_data = digits.load(args.data)
    mine = tuple(part[WORKER::WORKERS] for part in train_data)
    config = tf.estimator.RunConfig(
        args.output, save_checkpoints_steps=args.steps // 2, save_summary_steps=100, log_step_count_steps=None
    )
    estimator = tf.estimator.Estimator(describe_model, config=config, params={"learning_rate": args.learning_rate})
    if config.task_type in ("chief", "worker"):
        print(f"{config.task_type} {config.task_id} is worker {WORKER} of {WORKERS} and has {len(mine[0])} digits")

    def read_own_part():
        return tf.data.Dataset.from_tensor_slices(mine).shuffle(4000).repeat().batch(args.batch_size)

    def read_tests():
        return tf.data.Dataset.from_tensor_slices(test_data).batch(500)

    tf.estimator.train_and_evaluate(
        estimator,
        tf.estimator.TrainSpec(read_own_part, max_steps=args.steps),
        tf.estimator.EvalSpec(read_tests, steps=None, hooks=[Report(args.steps)], start_delay_secs=1, throttle_secs=1),
    )


def describe_model(features, labels, mode, params):
    w1 = tf.compat.v1.get_variable("w1", (784, 100))
    b1 = tf.compat.v1.get_variable("b1", (100,), initializer=tf.zeros_initializer())
    w2 = tf.compat.v1.get_variable("w2", (100, 10))
    b2 = tf.compat.v1.get_variable("b2", (10,), initializer=tf.zeros_initializer())
    flat = tf.reshape(tf.cast(features, tf.float32) / 255, (-1, 784))
    logits = tf.matmul(tf.nn.relu(tf.matmul(flat, w1) + b1), w2) + b2
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    optimizer = tf.compat.v1.train.GradientDescentOptimizer(params["learning_rate"])
    step = optimizer.minimize(loss, global_step=tf.compat.v1.train.get_or_create_global_step())
    accuracy = tf.compat.v1.metrics.accuracy(labels, tf.argmax(logits, axis=1))
    tf.compat.v1.add_to_collection("accuracy", accuracy[0])
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=step, eval_metric_ops={"accuracy": accuracy})


class Report(tf.estimator.SessionRunHook):
    """Prints the accuracy that the evaluator has computed."""

    def __init__(self, steps):
        self.steps = steps

    def end(self, session):
        (accuracy,) = session.graph.get_collection("accuracy")
        step, share = session.run((tf.compat.v1.train.get_global_step(session.graph), accuracy))
        print(f"step {step} of {self.steps}: test accuracy: {share:.4f}")


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
