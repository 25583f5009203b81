"""The starter riseml.yml that `riseml init` writes: short, commented and valid. It runs without any other file."""

from __future__ import annotations

import re

from riseml.base.errors import UsageError
from riseml.spec.config.types import DEFAULT_JAX, DEFAULT_PYTORCH, DEFAULT_TENSORFLOW

_PLAIN = """\
# What to train and what it needs. All keys: docs/riseml-yml.md
project: {project}

train:
  image: python:3.11          # any Docker image
  # install:                  # steps that are built into the image once
  #   - pip install -r requirements.txt

  resources:                  # guaranteed to the job; it may use more
    cpus: 1
    mem: 2GiB
    gpus: 0

  parameters:                 # for one run: riseml train -p lr=0.1
    lr: 0.01                  # a list makes one experiment for each value: [0.1, 0.01]

  # This runs as it is. Replace it with your own program:
  # run: python train.py --lr {{{{lr}}}} --output "$OUTPUT_DIR"
  # outputs: [runs, "*.pt"]    # what your program writes elsewhere, moved into OUTPUT_DIR at its end
  run: |
    python - {{{{lr}}}} <<'END'
    import os, sys
    lr, x = float(sys.argv[1]), 5.0
    for step in range(1, 101):  # gradient descent: the x with the smallest x * x
        x -= lr * 2 * x
        if step % 20 == 0:
            print("step", step, "loss", round(x * x, 6))
    open(os.path.join(os.environ["OUTPUT_DIR"], "result.txt"), "w").write(str(x))
    END
"""

_TENSORFLOW = """\
# What to train and what it needs. All keys: docs/riseml-yml.md
project: {project}

train:
  framework: tensorflow
  tensorflow:
    version: "{version}"         # the tag of the image tensorflow/tensorflow; with GPUs: "{version}-gpu"
    # tensorboard: true         # shows the summaries in OUTPUT_DIR
    # distributed:              # several jobs; each finds its role in TF_CONFIG
    #   worker: 3               # master, worker.1 and worker.2
    #   ps: 1

  # install:                    # steps that are built into the image once
  #   - pip install -r requirements.txt

  resources:                    # guaranteed to each job; it may use more
    cpus: 1
    mem: 2GiB
    gpus: 0

  parameters:                   # for one run: riseml train -p lr=0.1
    lr: 0.01                    # a list makes one experiment for each value: [0.1, 0.01]

  # This runs as it is. Replace it with your own program:
  # run: python train.py --lr {{{{lr}}}} --output "$OUTPUT_DIR"
  # outputs: [runs, "*.pt"]    # what your program writes elsewhere, moved into OUTPUT_DIR at its end
  run: |
    python - {{{{lr}}}} <<'END'
    import os, sys
    import tensorflow as tf
    x = tf.random.normal([1000, 1])
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile(optimizer=tf.keras.optimizers.SGD(float(sys.argv[1])), loss="mse")
    model.fit(x, 3 * x + 1, epochs=3, verbose=2)
    model.save(os.path.join(os.environ["OUTPUT_DIR"], "model.keras"))
    END
"""

_PYTORCH = """\
# What to train and what it needs. All keys: docs/riseml-yml.md
project: {project}

train:
  framework: pytorch
  pytorch:
    version: "{pytorch}"   # the tag of the image pytorch/pytorch
    # distributed:              # several jobs; each finds the others in MASTER_ADDR, WORLD_SIZE and RANK
    #   worker: 3               # master, worker.1 and worker.2

  # install:                    # steps that are built into the image once
  #   - pip install -r requirements.txt

  resources:                    # guaranteed to each job; it may use more
    cpus: 1
    mem: 2GiB
    gpus: 0

  parameters:                   # for one run: riseml train -p lr=0.1
    lr: 0.01                    # a list makes one experiment for each value: [0.1, 0.01]

  # This runs as it is. Replace it with your own program:
  # run: python train.py --lr {{{{lr}}}} --output "$OUTPUT_DIR"
  # outputs: [runs, "*.pt"]    # what your program writes elsewhere, moved into OUTPUT_DIR at its end
  run: |
    python - {{{{lr}}}} <<'END'
    import os, sys
    import torch
    x = torch.randn(1000, 1)
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=float(sys.argv[1]))
    for step in range(1, 101):
        loss = ((model(x) - (3 * x + 1)) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print("step", step, "loss", round(loss.item(), 6))
    torch.save(model.state_dict(), os.path.join(os.environ["OUTPUT_DIR"], "model.pt"))
    END
"""

_JAX = """\
# What to train and what it needs. All keys: docs/riseml-yml.md
project: {project}

train:
  framework: jax
  jax:
    version: "{jax}"           # riseml installs it on python:3.12-slim
    # distributed:              # several jobs; `jax.distributed.initialize()` finds the others
    #   worker: 3               # master, worker.1 and worker.2

  # install:                    # steps that are built into the image once
  #   - pip install -r requirements.txt

  resources:                    # guaranteed to each job; it may use more
    cpus: 1
    mem: 2GiB
    gpus: 0

  parameters:                   # for one run: riseml train -p lr=0.1
    lr: 0.1                     # a list makes one experiment for each value: [0.1, 0.01]

  # This runs as it is. Replace it with your own program:
  # run: python train.py --lr {{{{lr}}}} --output "$OUTPUT_DIR"
  # outputs: [runs, "*.pt"]    # what your program writes elsewhere, moved into OUTPUT_DIR at its end
  run: |
    python - {{{{lr}}}} <<'END'
    import os, sys
    import jax, jax.numpy as jnp
    x = jax.random.normal(jax.random.key(0), (1000,))
    @jax.jit
    def step(w):
        loss, gradient = jax.value_and_grad(lambda w: ((w[0] * x + w[1] - (3 * x + 1)) ** 2).mean())(w)
        return w - float(sys.argv[1]) * gradient, loss
    w = jnp.zeros(2)
    for number in range(1, 101):
        w, loss = step(w)
        if number % 20 == 0:
            print("step", number, "loss", round(float(loss), 6))
    jnp.save(os.path.join(os.environ["OUTPUT_DIR"], "model.npy"), w)
    END
"""

_STARTERS: dict[str | None, str] = {None: _PLAIN, "tensorflow": _TENSORFLOW, "pytorch": _PYTORCH, "jax": _JAX}
_NULL = frozenset({"null", "Null", "NULL"})  # YAML reads these as null unless they are quoted


def make_starter_config(project: str, framework: str | None) -> str:
    """Return a commented, valid riseml.yml.

    Example: `make_starter_config("my project", "tensorflow")` begins with a comment and `project: my-project`.

    Args:
        project: any folder name; characters that a project name may not have become `-`.
        framework: None for a file without a framework.

    Raises:
        UsageError: the framework is unknown.
    """
    if framework not in _STARTERS:
        frameworks = ", ".join(name for name in _STARTERS if name)
        raise UsageError(f"there is no starter riseml.yml for the framework {framework!r}", f"use one of: {frameworks}")
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", project).strip("-")[:100] or "my-project"
    written = f'"{name}"' if name in _NULL else name
    versions = {"version": DEFAULT_TENSORFLOW, "pytorch": DEFAULT_PYTORCH, "jax": DEFAULT_JAX}
    return _STARTERS[framework].format(project=written, **versions)
