"""What transformers' Trainer reports by Kubeflow's protocol are metrics and progress, without a line for riseml."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.frameworks.test_toaster import find_cache
from tests.real.metrics.test_reports import read_metrics
from tests.support.rig import GO, Rig, single
from tests.support.wheels import install_packages

TRANSFORMERS = "transformers==5.24.0"
ACCELERATE = "accelerate==1.15.0"
TRAINING = """
import json, os, signal, sys
sys.path += [os.environ["DATA_DIR"] + "/" + name for name in ("packages", "accelerate")]
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

class Interval(TrainerCallback):  # each step reports, and the relay is killed before the last but one
    def on_step_begin(self, args, state, control, **more):
        for callback in trainer.callback_handler.callbacks:
            if type(callback).__name__ == "KubeflowCallback":
                callback._MIN_UPDATE_INTERVAL = 0
        if state.global_step == 12:
            os.system(os.environ["WAIT"])
        if state.global_step == 18:
            os.kill(find_relay(), signal.SIGKILL)

def find_relay():
    for name in filter(str.isdigit, os.listdir("/proc")):
        words = open("/proc/" + name + "/cmdline", "rb").read().split(b"\\0")
        if b".riseml/trainer_relay.py" in words:
            return int(name)

data = [{"input_ids": torch.tensor([1, 2, 3, 4]), "labels": torch.tensor([1, 2, 3, 4])}] * 8
model = GPT2LMHeadModel(GPT2Config(vocab_size=16, n_positions=8, n_embd=8, n_layer=1, n_head=1))
arguments = TrainingArguments("/tmp/model", max_steps=20, logging_steps=1, save_strategy="no", disable_tqdm=True)
trainer = Trainer(model, arguments, train_dataset=data, callbacks=[Interval()])
trainer.train()
print("losses", json.dumps([entry["loss"] for entry in trainer.state.log_history if "loss" in entry]))
"""


@pytest.fixture
def packages_rig(tmp_path: Path, engine_url: str) -> Iterator[Rig]:
    packages = find_cache() / TRANSFORMERS
    install_packages(packages / "packages", TRANSFORMERS, "psutil")
    install_packages(packages / "accelerate", "--no-deps", ACCELERATE)
    with Rig(tmp_path / "home", engine_url, RISEML_DATA=str(packages)) as rig:
        yield rig


def test_a_trainer_reports_by_the_protocol_of_kubeflow(packages_rig: Rig) -> None:
    """The server is killed in the middle, and later the relay: the training does not notice either."""
    config = single(
        "python3 train.py",
        image="riseml-test/pytorch:2.13.0",
        track=["kubeflow"],
        env={"WAIT": GO},
        resources={"cpus": 1, "mem": "2GiB"},
    )
    packages_rig.submit(config, {"train.py": TRAINING})
    packages_rig.wait("the first steps are read", lambda: read_metrics(packages_rig, "1").get("loss"))
    packages_rig.kill()
    packages_rig.start()
    packages_rig.go_file("1").touch()
    assert packages_rig.wait_closed("1")["state"] == "FINISHED", packages_rig.lines("1.train")
    found = read_metrics(packages_rig, "1")
    assert set(found) == {"loss", "grad_norm", "learning_rate", "epoch"}
    (line,) = [line for line in packages_rig.lines("1.train") if line.startswith("1.train losses ")]
    losses = json.loads(line.removeprefix("1.train losses "))
    loss = packages_rig.get("/v1/experiments/1/metrics/history", metric="loss")["buckets"]
    # A step reports what was logged after the step before it. Those from 19 on have met no relay.
    assert [(value["last_step"], value["min"]) for value in loss] == list(zip(range(2, 19), losses, strict=False))
