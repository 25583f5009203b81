"""Small trainings that really hang, each for one cause, and what riseml should say of them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

PATIENCE = "4s"
"""The silence that counts as a stall, so that tests do not wait for minutes."""

_ALL = r"\(([23]) of \1 samples\)"  # a loaded engine may be late for one
_TORCH = "riseml-test/pytorch:2.13.0"
_GANG = """
import os, sys, threading, time
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
ones = torch.ones(1)
def train(steps=3):
    for step in range(steps):
        dist.all_reduce(ones)
        print("step", step, flush=True)
train()
"""
_PLAIN = """
import os, sys, time
name = os.environ["RISEML_JOB"]
for step in range(3):
    print("step", step, flush=True)
"""


@dataclass(frozen=True)
class Hang:
    """One cause, and a project that hangs for it."""

    name: str  # for people: `a rank that skips a collective`
    program: str  # train.py
    jobs: str  # `single`, `roles`, `pytorch` or `tensorflow`
    cause: str  # `StallCause`
    culprits: tuple[str, ...]
    sentence: str  # regular expression of all of it

    def make_config(self, *, contained: bool) -> str:
        """Return its riseml.yml.

        Args:
            contained: the jobs run in containers; else PyTorch is installed for them.
        """
        train: dict[str, Any] = {
            "run": "python3 train.py",
            "resources": {"cpus": 0.1, "mem": "256MiB"},
            "stall": {"after": PATIENCE},
        }
        match self.jobs:
            case "pytorch":
                section: dict[str, Any] = {"distributed": {"worker": 3}}
                section |= {} if contained else {"version": "2.13.0-cpu"}
                train |= {"framework": "pytorch", "pytorch": section} | ({"image": _TORCH} if contained else {})
            case "tensorflow":
                cluster = {"worker": 2, "ps": 0}
                train |= {"framework": "tensorflow", "tensorflow": {"version": "2.21.0", "distributed": cluster}}
            case "roles":
                train |= {"image": "riseml-test/base:py311", "roles": {"worker": {"count": 2}, "ps": {"count": 1}}}
            case _:
                train |= {"image": "riseml-test/base:py311"}
        return json.dumps({"project": "hangs", "train": train})

    def fits(self, diagnosis: dict[str, Any]) -> bool:
        """Return True for a diagnosis that names this cause."""
        said = (diagnosis["cause"], tuple(diagnosis["culprits"]))
        return said == (self.cause, self.culprits) and re.fullmatch(self.sentence, diagnosis["sentence"]) is not None


PLAIN_HANGS = (
    Hang(
        "an endless loop in Python",
        _PLAIN + "def spin():\n    while True:\n        sum(range(100))\nspin()\n",
        "single",
        "busy",
        ("train",),
        rf"train: it computes in \w+ \(train\.py:\d+\) {_ALL}",
    ),
    Hang(
        "a lock on a file that another process holds",
        _PLAIN
        + """
import fcntl
if os.fork() == 0:
    held = open("lock", "w")
    fcntl.flock(held, fcntl.LOCK_EX)
    print("locked", flush=True)
    time.sleep(3600)
while not os.path.exists("lock"):
    time.sleep(0.1)
time.sleep(1)
def take():
    mine = open("lock", "w")
    fcntl.flock(mine, fcntl.LOCK_EX)
take()
""",
        "single",
        "lock",
        ("train",),
        rf"train: it waits for a lock on a file in take \(train\.py:\d+\) {_ALL}.*",
    ),
    Hang(
        "a server that never answers",
        _PLAIN
        + """
import socket, urllib.request
listener = socket.create_server(("127.0.0.1", 0))
def fetch():
    urllib.request.urlopen("http://127.0.0.1:%d/x" % listener.getsockname()[1])
fetch()
""",
        "single",
        "network",
        ("train",),
        rf"train: it waits for the network in \w+ \(train\.py:\d+\) {_ALL}",
    ),
    Hang(
        "no more files may be opened",
        _PLAIN
        + """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
kept = []
def keep_opening():
    while True:
        try:
            kept.append(open("/dev/null"))
        except OSError:
            time.sleep(0.5)
keep_opening()
""",
        "single",
        "open-files",
        ("train",),
        r"train has 64 of 64 files open, and can open no more, in keep_opening \(train\.py:\d+\)",
    ),
    Hang(
        "a parameter server that is stopped",
        _PLAIN
        + """
import signal
if name.startswith("ps"):
    child = os.fork()
    if child:
        os.waitpid(child, 0)
    else:
        os.kill(os.getpid(), signal.SIGSTOP)
time.sleep(3600)
""",
        "roles",
        "stopped",
        ("ps.1",),
        r"ps\.1 is stopped by a signal: SIGCONT lets process \d+ of it go on",
    ),
    Hang(
        "a pool whose worker holds a lock since its fork",
        _PLAIN
        + """
import threading
from multiprocessing import get_context
lock = threading.Lock()
def hold():
    with lock:
        time.sleep(3600)
threading.Thread(target=hold, daemon=True).start()
time.sleep(0.5)
def load(at):
    with lock:
        return at
def read_batch():
    with get_context("fork").Pool(1) as pool:
        return pool.map(load, [1])
read_batch()
""",
        "single",
        "child",
        ("train",),
        rf"train: it waits for a process that it has started in Pool\.map \(train\.py:\d+\) {_ALL}; a"
        r" process that it has started: it waits for a lock or another thread in load \(train\.py:\d+\)",
    ),
)

TORCH_HANGS = (
    Hang(
        "a rank that skips a collective",
        _GANG
        + """
if rank != 1:
    dist.all_reduce(ones)
dist.barrier()
""",
        "pytorch",
        "order",
        ("worker.1",),
        r"worker\.1 waits in barrier \(train\.py:\d+\), and the others wait in all_reduce \(train\.py:\d+\): .*",
    ),
    Hang(
        "a rank in an endless loop",
        _GANG
        + """
def spin():
    while True:
        sum(range(100))
if rank == 2:
    spin()
dist.all_reduce(ones)
""",
        "pytorch",
        "left-loop",
        ("worker.2",),
        rf"worker\.2 left the loop: it computes in spin \(train\.py:\d+\) {_ALL}; the others wait for it in"
        r" all_reduce \(train\.py:\d+\)",
    ),
    Hang(
        "a DataLoader whose process waits for a lock",
        _GANG
        + """
lock = threading.Lock()
def hold():
    with lock:
        time.sleep(3600)
class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 8
    def __getitem__(self, at):
        with lock:
            return at
if rank == 1:
    threading.Thread(target=hold, daemon=True).start()
    time.sleep(0.5)
    for batch in torch.utils.data.DataLoader(Numbers(), num_workers=1, multiprocessing_context="fork"):
        pass
dist.all_reduce(ones)
""",
        "pytorch",
        "left-loop",
        ("worker.1",),
        rf"worker\.1 left the loop: it waits for data in DataLoader, \S*__next__ \(train\.py:\d+\) {_ALL};"
        r" the others wait for it in all_reduce \(train\.py:\d+\)",
    ),
    Hang(
        "ranks that call collectives in another order",
        _GANG
        + """
if rank == 2:
    dist.broadcast(ones, 0)
    dist.barrier()
else:
    dist.barrier()
    dist.broadcast(ones, 2)
""",
        "pytorch",
        "order",
        ("worker.2",),
        r"worker\.2 waits in broadcast \(train\.py:\d+\), and the others wait in barrier \(train\.py:\d+\): .*",
    ),
    Hang(
        "a rank that has not joined",
        """
import os, time
if os.environ["RANK"] == "1":
    print("reads its data", flush=True)
    time.sleep(3600)
import torch.distributed as dist
print("joins", flush=True)
dist.init_process_group("gloo")
""",
        "pytorch",
        "meeting",
        ("worker.1",),
        r"master and worker\.2 wait for worker\.1 in init_process_group \(train\.py:\d+\), and worker\.1 does not come:"
        " .*",
    ),
)

TENSORFLOW_HANGS = (
    Hang(
        "a worker in TF_CONFIG that never comes",
        """
import json, os
config = json.loads(os.environ["TF_CONFIG"])
config["cluster"]["worker"].append("127.0.0.1:9")
os.environ["TF_CONFIG"] = json.dumps(config)
import tensorflow as tf
print("joins", flush=True)
tf.distribute.MultiWorkerMirroredStrategy()
print("has joined", flush=True)
""",
        "tensorflow",
        "meeting",
        ("master", "worker.1"),
        r".* wait for peers that never come, in .*",
    ),
)
