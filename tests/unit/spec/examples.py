"""Valid files: every form that RiseML's documentation and riseml's own pages show, and a pool.yml with every key."""

from __future__ import annotations

from riseml.spec.config.loader import load_config
from riseml.spec.config.types import TensorFlow, Train

HEAD = "project: x\ntrain:\n  image: a\n"
"""How a short riseml.yml begins; more keys of `train` follow."""

DISTRIBUTED = """\
project: ai-toaster
train:
  framework: tensorflow
  resources:
    cpus: 2
    mem: 16384
    gpus: 4
  tensorflow:
    version: 1.2.1-gpu
    distributed:
      worker: 3
      ps:
        count: 2
        resources:
          cpus: 2
          mem: 16384
          gpus: 0
  run: >-
    python train_model.py --num-layers {{ num-layers }}
                          --learning-rate {{ learning-rate }}
                          --training-data /data/my-project
"""
"""A file of RiseML 1.2.3, unchanged; it needs `-p num-layers=4 -p learning-rate=0.01`."""

EXAMPLES = {
    "the smallest": "project: x\ntrain:\n  image: python:3.11\n  run: python t.py\n",
    "flow": "{project: x, train: {image: python:3.11, run: python t.py}}\n",
    "json": '{"project": "x", "train": {"image": "python:3.11", "run": ["python t.py"]}}\n',
    "projects of others": "project: mask_rcnn\ntrain: {image: a, run: b}\n",
    "image with install": """\
project: lj_riseml
train:
  image:
    name: nvidia/cuda:9.0-cudnn7-runtime
    install:
    - apt-get -y update
    - pip install -r requirements.txt
  resources:
    cpus: .5
    mem: 512
    gpus: 1
  run:
  - python prepare.py
  - python train.py --epochs 10 \\
      --lr 0.1
""",
    "install beside image": "project: x\ntrain: {image: a, install: pip install b, run: c}\n",
    "framework without its section": "project: x\ntrain: {framework: tensorflow, run: c}\n",
    "framework with an image": "project: x\ntrain: {framework: tensorflow, image: my/tf:2, run: c}\n",
    "version as a number": "project: x\ntrain: {framework: tensorflow, tensorflow: {version: 1.10}, run: c}\n",
    "not distributed": "project: x\ntrain: {framework: tensorflow, tensorflow: {distributed: false}, run: c}\n",
    "all roles": """\
project: x
train:
  framework: tensorflow
  resources: {cpus: 2, mem: 4GiB, gpus: 1}
  tensorflow:
    version: 2.21.0
    tensorboard: true
    distributed:
      worker: {count: 3, resources: {gpus: 2}}
      ps: {count: 2, resources: {gpus: 0, mem: 16GiB}}
      master: {resources: {mem: 8GiB}}
      evaluator: {resources: {cpus: 1}}
  run: python t.py --job {{job_name}} --task {{ task_index }} --ps {{ps_hosts}} --workers {{worker_hosts}}
""",
    "horovod": "project: x\ntrain: {framework: tensorflow, tensorflow: {horovod: {workers: 2}}, run: c}\n",
    "horovod counted": """\
project: x
train:
  framework: tensorflow
  tensorflow: {horovod: {workers: {count: 2, processes: 4}}}
  run: c
""",
    "horovod counted directly": """\
project: x
train: {framework: tensorflow, tensorflow: {horovod: {count: 2, processes: 4}}, run: c}
""",
    "a grid": """\
project: x
train:
  image: a
  parameters:
    lr: [1e-6, 0.10, "0.1 0.2"]
    layers: {range: {min: 2, max: 6, step: 1}}
    flag: yes
    start: 012
    at: 22:22
  concurrency: 4
  run: python t.py {{lr}} {{layers}} {{flag}} {{start}} {{at}}
""",
    "pytorch": "project: x\ntrain: {framework: pytorch, image: pytorch/pytorch, shm_size: 8GiB, run: c}\n",
    "all the rest": """\
project: x
train:
  image: registry.example.org:5000/team/image@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
  env: {A: 1, B: "x y", C: yes, D: ""}
  limits: {cpus: 4, mem: 8GiB}
  retry: {max: 2, on: [host-lost, out-of-memory], scope: role}
  max_duration: 1d
  stop_grace: 0
  finish_grace: 1h30m
  priority: -5
  notify: {on: [failed, finished, "accuracy > 0.95", loss<=1e-3], to: [team]}
  run: c
""",
    "env as a list": "project: x\ntrain: {image: a, env: [TOKEN, MODE=fast, EMPTY=], run: b}\n",
    "anchors": "project: x\ntrain: {image: a, run: &line b, install: *line}\n",
}

FULL_POOL = """\
hosts:
  - name: gpu1
    url: ssh://me@gpu1:2222/run/other.sock
    gpus: [0, GPU-8f2c]
    labels: {gpu: a100, fast: true, driver: 1.10}
    cpus: 30.5
    mem: 120GiB
    identity: keys/id
    known_hosts: ../known
  - {name: gpu2, url: "TCP://GPU2.example.org:2376/", tls: {ca: ca.pem, cert: ca.pem, key: keys/id}, mem: 16384}
  - {name: lab, url: "tcp://[2001:db8::1]:2375", insecure: true, address: lab.example.org, gpus: all}
storage:
  output: /mnt/out
  data: {volume: data, driver: nfs, options: {o: "addr=192.0.2.10,ro", hard: yes}}
disk: {clean_above: 92}
network: host
encrypted: no
registry: registry.example.org:5000/riseml
"""
"""A pool.yml with every key that hosts may have."""


def load_example(name: str) -> Train:
    """Return the section `train` of a file of `EXAMPLES`."""
    return load_config(EXAMPLES[name]).train


def load_tensorflow(text: str) -> TensorFlow:
    """Return a section `tensorflow`, from its value as text."""
    section = load_config(
        f"project: x\ntrain:\n  framework: tensorflow\n  run: a\n  tensorflow: {text}\n"
    ).train.tensorflow
    assert section is not None
    return section
