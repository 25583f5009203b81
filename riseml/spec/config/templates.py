"""The starter riseml.yml that `riseml init` writes: short, commented and valid. It runs without any other file."""

from __future__ import annotations

import re
import textwrap

from riseml.base.errors import UsageError
from riseml.base.records import dataclass
from riseml.spec.config.types import DEFAULT_JAX, DEFAULT_PYTORCH, DEFAULT_TENSORFLOW

_HEAD = """\
# What to train and what it needs. All keys: `riseml docs riseml-yml`
project: {project}

train:
"""
_INSTALL = """
  # install:                    # steps that are built into the image once
  #   - pip install -r requirements.txt
"""
_BODY = """
  resources:                    # guaranteed to each job; it may use more
    cpus: {cpus}
    mem: {mem}
    gpus: 0

  parameters:                   # for one run: riseml train -p lr=0.1
    lr: {lr}                    # a list makes one experiment for each value: [0.1, 0.01]
"""
_RUN = """
  # This runs as it is. Replace it with your own program, which reports metrics by `riseml.report(step=1, loss=0.3)`:
  # run: python train.py --lr {{lr}} --output "$OUTPUT_DIR"
  # outputs: [runs, "*.pt"]    # what your program writes elsewhere, moved into OUTPUT_DIR at its end
  run: |
"""
_PLAIN = """\
import os, sys
import riseml
lr, x = float(sys.argv[1]), 5.0
for step in range(1, 101):  # gradient descent: the x with the smallest x * x
    x -= lr * 2 * x
    riseml.report(step=step, loss=x * x)  # what `riseml plot` draws
    if step % 20 == 0:
        print("step", step, "loss", round(x * x, 6))
open(os.path.join(os.environ["OUTPUT_DIR"], "result.txt"), "w").write(str(x))
"""
_TENSORFLOW = """\
import os, sys
import riseml
import tensorflow as tf
class Report(tf.keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        riseml.report(logs or {}, step=epoch + 1)  # what `riseml plot` draws
x = tf.random.normal([1000, 1])
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile(optimizer=tf.keras.optimizers.SGD(float(sys.argv[1])), loss="mse")
model.fit(x, 3 * x + 1, epochs=3, verbose=2, callbacks=[Report()])
model.save(os.path.join(os.environ["OUTPUT_DIR"], "model.keras"))
"""
_PYTORCH = """\
import os, sys
import riseml
import torch
x = torch.randn(1000, 1)
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=float(sys.argv[1]))
for step in range(1, 101):
    loss = ((model(x) - (3 * x + 1)) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    riseml.report(step=step, loss=loss)  # what `riseml plot` draws
    if step % 20 == 0:
        print("step", step, "loss", round(loss.item(), 6))
torch.save(model.state_dict(), os.path.join(os.environ["OUTPUT_DIR"], "model.pt"))
"""
_JAX = """\
import os, sys
import riseml
import jax, jax.numpy as jnp
x = jax.random.normal(jax.random.key(0), (1000,))
@jax.jit
def step(w):
    loss, gradient = jax.value_and_grad(lambda w: ((w[0] * x + w[1] - (3 * x + 1)) ** 2).mean())(w)
    return w - float(sys.argv[1]) * gradient, loss
w = jnp.zeros(2)
for number in range(1, 101):
    w, loss = step(w)
    riseml.report(step=number, loss=loss)  # what `riseml plot` draws
    if number % 20 == 0:
        print("step", number, "loss", round(float(loss), 6))
jnp.save(os.path.join(os.environ["OUTPUT_DIR"], "model.npy"), w)
"""
_HOROVOD = """\
import os, sys
import riseml
import tensorflow as tf
import horovod.tensorflow as hvd
hvd.init()
x = tf.random.normal([1000, 1], seed=hvd.rank() + 1)
weight, bias, lr = tf.Variable(0.0), tf.Variable(0.0), float(sys.argv[1])
for step in range(1, 101):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((weight * x + bias - (3 * x + 1)) ** 2)
    for variable, gradient in zip((weight, bias), tape.gradient(loss, (weight, bias))):
        variable.assign_sub(lr * hvd.allreduce(gradient))
    if hvd.rank() == 0:
        riseml.report(step=step, loss=loss)  # what `riseml plot` draws
        if step % 20 == 0:
            print("step", step, "loss", round(float(loss), 6))
if hvd.rank() == 0:
    open(os.path.join(os.environ["OUTPUT_DIR"], "result.txt"), "w").write(str((weight.numpy(), bias.numpy())))
"""
_ROLES = """
  # This runs as it is. Replace the commands with your own programs, which report their metrics by
  # `riseml.report(step=1, loss=0.3)`:
  # run: python learner.py --lr {{lr}} --output "$OUTPUT_DIR"
  # outputs: [runs, "*.pt"]    # what your programs write elsewhere, moved into OUTPUT_DIR at their end
  roles:
    learner:                    # the first role decides: its exit code is that of the experiment
      run: |
        python - {{lr}} <<'END'
        import os, socket, sys
        import riseml
        server = socket.create_server((os.environ["ROLE_HOST"], int(os.environ["ROLE_PORT"])))
        lr, x = float(sys.argv[1]), 5.0
        step = 0
        while step < 100:  # gradient descent: an actor computes each gradient
            try:
                with server.accept()[0] as actor:
                    actor.sendall(f"{x}\\n".encode())
                    gradient = float(actor.makefile().readline())
            except (OSError, ValueError):  # it has only asked whether the learner answers
                continue
            step += 1
            x -= lr * gradient
            riseml.report(step=step, loss=x * x)  # what `riseml plot` draws
            if step % 20 == 0:
                print("step", step, "loss", round(x * x, 6))
        open(os.path.join(os.environ["OUTPUT_DIR"], "result.txt"), "w").write(str(x))
        END

    actor:
      count: 2                  # actor.1 and actor.2; `ends: helps` is the default of all roles but the first
      after: [learner]          # starts when the learner answers at its address
      run: |
        python - {{learner_address}} <<'END'
        import socket, sys, time
        host, _, port = sys.argv[1].rpartition(":")
        answered = 0
        while True:
            time.sleep(0.02)  # stands for a computation that takes longer
            try:
                with socket.create_connection((host, int(port))) as learner:
                    x = float(learner.makefile().readline())
                    learner.sendall(f"{2 * x}\\n".encode())
                    answered += 1
            except (OSError, ValueError):  # the learner has ended
                break
        print("computed", answered, "gradients")
        END
"""


@dataclass(frozen=True, slots=True)
class _Starter:
    """What the starter file of one framework has of its own."""

    section: str  # the keys of `train` that choose what the jobs are
    program: str  # of the heredoc in `run`; empty: the section `roles` has the commands
    lr: str = "0.01"  # the parameter
    python: str = "python"  # the interpreter's name in the image


_STARTERS = {
    "plain": _Starter("  image: python:3.11            # any Docker image\n", _PLAIN),
    "tensorflow": _Starter(
        f"""\
  framework: tensorflow
  tensorflow:
    version: "{DEFAULT_TENSORFLOW}"         # a tag of tensorflow/tensorflow; with GPUs: "{DEFAULT_TENSORFLOW}-gpu"
    # tensorboard: true         # shows the summaries in OUTPUT_DIR
    # distributed:              # several jobs; each finds its role in TF_CONFIG
    #   worker: 3               # master, worker.1 and worker.2
    #   ps: 1
""",
        _TENSORFLOW,
    ),
    "pytorch": _Starter(
        f"""\
  framework: pytorch
  pytorch:
    version: "{DEFAULT_PYTORCH}"   # the tag of the image pytorch/pytorch
    # distributed:              # several jobs; each finds the others in MASTER_ADDR, WORLD_SIZE and RANK
    #   worker: 3               # master, worker.1 and worker.2
""",
        _PYTORCH,
    ),
    "jax": _Starter(
        f"""\
  framework: jax
  jax:
    version: "{DEFAULT_JAX}"           # riseml installs it on python:3.12-slim
    # distributed:              # several jobs; `jax.distributed.initialize()` finds the others
    #   worker: 3               # master, worker.1 and worker.2
""",
        _JAX,
        "0.1",
    ),
    "horovod": _Starter(
        """\
  framework: tensorflow         # or: pytorch
  tensorflow:
    horovod:
      workers: 2                # containers; `{count: 2, processes: 4}`: with four processes in each
""",
        _HOROVOD,
        "0.1",
        "python3",
    ),
    "roles": _Starter("  image: python:3.11            # for all roles; any Docker image\n", ""),
}
FRAMEWORKS = tuple(_STARTERS)
"""The names that `make_starter_config` takes: those of the schema, and what riseml runs without them."""

_NULL = frozenset({"null", "Null", "NULL"})  # YAML reads these as null unless they are quoted


def make_starter_config(project: str, framework: str | None) -> str:
    """Return a commented, valid riseml.yml.

    Example: `make_starter_config("my project", "tensorflow")` begins with a comment and `project: my-project`.

    Args:
        project: any folder name; characters that a project name may not have become `-`.
        framework: one of `FRAMEWORKS`; None for a file without a framework.

    Raises:
        UsageError: the framework is unknown.
    """
    starter = _STARTERS.get("plain" if framework is None else framework)
    if starter is None:
        message = f"there is no starter riseml.yml for the framework {framework!r}"
        raise UsageError(message, f"use one of: {', '.join(FRAMEWORKS)}")
    head = _HEAD.format(project=write_project_name(project)) + starter.section + _INSTALL
    cpus, mem = ("1", "2GiB") if starter.program else ("0.5", "512MiB")
    body = _BODY.format(lr=starter.lr.ljust(4), cpus=cpus, mem=mem)
    if not starter.program:
        return head + body + _ROLES
    program = f"{starter.python} - {{{{lr}}}} <<'END'\n{starter.program}END\n"
    return head + body + _RUN + textwrap.indent(program, "    ")


def write_project_name(folder: str) -> str:
    """Return the name of a project as riseml.yml has it, from any name of a folder."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", folder).strip("-")[:100] or "my-project"
    return f'"{name}"' if name in _NULL else name
