#!/usr/bin/env bash
# The first minutes of a newcomer: an empty virtual environment, riseml, and three projects such as others have. Each gets
# its riseml.yml from `riseml init`, trains, and has a curve.
# Usage: first_minutes.sh REPOSITORY FOLDER UV IMAGE, with RISEML_HOME and RISEML_EXECUTOR set. FOLDER is empty; IMAGE has
# Python and pip.
set -euo pipefail
repository=$1 folder=$2 uv=$3 image=$4
"$uv" venv --quiet --python 3.11 "$folder/venv"
"$uv" pip install --quiet --python "$folder/venv/bin/python" "$repository"
riseml=$folder/venv/bin/riseml
trap '"$riseml" server stop >"$folder/stop.log" 2>&1' EXIT

"$riseml" init --example # the package brings them
mkdir "$folder/descent" "$folder/walk" "$folder/keras"
cat >"$folder/descent/main.py" <<'END'
"""Gradient descent on a parabola."""
import argparse

from tabulate import tabulate


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lr", type=float, default=0.1, help="learning rate")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--save-dir", default="results")
    return parser.parse_args()


def main():
    args = parse()
    x, rows = 5.0, []
    for epoch in range(1, args.epochs + 1):
        x -= args.lr * 2 * x
        rows.append((epoch, x * x))
        print(f"Epoch {epoch}/{args.epochs} - train loss: {x * x:.5f}")
    with open(f"{args.save_dir}/table.txt", "w") as file:
        file.write(tabulate(rows))


if __name__ == "__main__":
    main()
END
echo "tabulate==0.9.0" >"$folder/descent/requirements.txt"
printf '%s\n' "FROM $image" "COPY . /src" "WORKDIR /src" 'CMD ["python", "main.py"]' >"$folder/descent/Dockerfile"

cat >"$folder/walk/pyproject.toml" <<'END'
[project]
name = "walk"
version = "0.1"
requires-python = ">=3.9"
dependencies = ["click>=8"]
END
echo "FROM $image" >"$folder/walk/Dockerfile"
cat >"$folder/walk/simulate.py" <<'END'
import random

import click


@click.command()
@click.option("--steps", default=50, help="how far it walks")
@click.option("--seed", default=7)
@click.option("--policy", type=click.Choice(["greedy", "random"]), default="random")
def walk(steps, seed, policy):
    source, reward = random.Random(seed), 0.0
    for step in range(1, steps + 1):
        reward += 1.0 if policy == "greedy" else source.random()
        click.echo("step %d: mean reward %.3f" % (step, reward / step))
    with open("walk.txt", "w") as file:
        file.write(str(reward))


if __name__ == "__main__":
    walk()
END

cat >"$folder/keras/train_line.py" <<'END'
import tensorflow as tf
from absl import app, flags

FLAGS = flags.FLAGS
flags.DEFINE_float("learning_rate", 0.05, "of the optimizer")
flags.DEFINE_integer("epochs", 3, "passes over the data")


def main(_):
    x = tf.random.normal([500, 1])
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile(optimizer=tf.keras.optimizers.SGD(FLAGS.learning_rate), loss="mse")
    model.fit(x, 3 * x + 1, epochs=FLAGS.epochs, verbose=2)
    model.save("line.keras")


if __name__ == "__main__":
    app.run(main)
END

train() { # project, metric, ID of its experiment
  cd "$folder/$1"
  "$riseml" init
  "$riseml" validate
  "$riseml" train
  "$riseml" plot "$3" "$2"
}
train descent train_loss 1
train walk mean_reward 2
train keras loss 3
