"""What TensorFlow and PyTorch write for TensorBoard are metrics, with the values, steps and times of the writer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import tensorboard

from tests.real.metrics.test_reports import read_metrics
from tests.support.rig import Rig, single

TENSORFLOW = """
import json, os, time
import numpy as np
import tensorflow as tf
out = os.environ["OUTPUT_DIR"]
writer = tf.summary.create_file_writer(out + "/eval")
with writer.as_default():
    for step in range(20):
        tf.summary.scalar("loss", 1 / (step + 1), step=step)
        tf.summary.histogram("weights", tf.zeros(9), step=step)
    tf.summary.text("note", "hello", step=1)
    tf.summary.image("samples", tf.zeros((2, 4, 4, 3)), step=3)
writer.close()
with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    old = tf.compat.v1.summary.FileWriter(out + "/old")
    for step in range(20):
        value = tf.compat.v1.Summary.Value(tag="accuracy", simple_value=step / 20)
        old.add_summary(tf.compat.v1.Summary(value=[value]), step)
    old.close()
model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
past = model.fit(np.ones((8, 3)), np.ones(8), epochs=3, verbose=0, validation_split=0.5,
                 callbacks=[tf.keras.callbacks.TensorBoard(out, histogram_freq=1)])
print(json.dumps({name: values[-1] for name, values in past.history.items()}))
"""

PYTORCH = """
import os, sys
sys.path.append(os.environ["DATA_DIR"])  # with the tensorboard of the tests, which the image lacks
from torch.utils.tensorboard import SummaryWriter
with SummaryWriter(os.environ["OUTPUT_DIR"]) as writer:
    for step in range(50):
        writer.add_scalar("loss/train", 1 / (step + 1), step, walltime=1e9 + step)
    writer.add_text("note", "hello")
    writer.add_hparams({"lr": 0.1, "optimizer": "sgd"}, {"final": 0.5}, run_name="chosen")
with SummaryWriter(os.environ["OUTPUT_DIR"], purge_step=45) as writer:
    for step in range(45, 60):
        writer.add_scalar("loss/train", 0.5, step)
with SummaryWriter() as writer:  # runs/TIME_HOST in the working folder
    writer.add_scalar("accuracy", 0.75, 7)
"""


@pytest.fixture
def engine_rig(tmp_path: Path, engine_url: str) -> Iterator[Rig]:
    packages = Path(tensorboard.__file__).parents[1]
    with Rig(tmp_path / "home", engine_url, RISEML_DATA=str(packages)) as rig:
        yield rig


def test_event_files_of_tensorflow(engine_rig: Rig) -> None:
    engine_rig.submit(single("python3 train.py", image="tensorflow/tensorflow:2.21.0"), {"train.py": TENSORFLOW})
    assert engine_rig.wait_closed("1")["state"] == "FINISHED", engine_rig.lines("1.train")
    found = read_metrics(engine_rig, "1")
    loss, accuracy = found["eval/loss"], found["old/accuracy"]
    assert (loss["count"], loss["min"], loss["min_step"], loss["max"]) == (20, 0.05, 19, 1.0)
    assert (accuracy["count"], accuracy["last"], accuracy["last_step"]) == (20, 0.95, 19)
    (line,) = [line for line in engine_rig.lines("1.train") if "val_loss" in line]
    last = json.loads(line.removeprefix("1.train "))
    epochs = {name: found[name] for name in ("train/epoch_loss", "validation/epoch_loss")}
    assert {name: (metric["count"], metric["last_step"]) for name, metric in epochs.items()} == dict.fromkeys(
        epochs, (3, 2)
    )
    assert epochs["train/epoch_loss"]["last"] == pytest.approx(last["loss"], rel=1e-6)
    assert epochs["validation/epoch_loss"]["last"] == pytest.approx(last["val_loss"], rel=1e-6)
    assert not any("weights" in name or "note" in name for name in found)
    media = Path(engine_rig.experiment("1")["output"], "media")
    files = sorted(str(path.relative_to(media)) for path in media.rglob("*.*"))
    assert files[:3] == ["eval/note/1.txt", "eval/samples/2/3.png", "eval/samples/3.png"]
    assert (media / "eval/note/1.txt").read_text() == "hello"
    assert (media / "eval/samples/3.png").read_bytes().startswith(b"\x89PNG")


def test_event_files_of_pytorch(engine_rig: Rig) -> None:
    """Of two writers in one folder, and in the folder `runs`, where SummaryWriter writes by itself."""
    engine_rig.submit(
        single("python3 train.py", image="riseml-test/pytorch:2.13.0", outputs=["runs"]), {"train.py": PYTORCH}
    )
    assert engine_rig.wait_closed("1")["state"] == "FINISHED", engine_rig.lines("1.train")
    found = read_metrics(engine_rig, "1")
    loss = found.pop("loss/train")
    assert (loss["count"], loss["min"], loss["min_step"], loss["last"], loss["last_step"]) == (65, 0.02, 49, 0.5, 59)
    history = engine_rig.get("/v1/experiments/1/metrics/history", metric="loss/train")["buckets"]
    assert (history[7]["first_step"], history[7]["first_at"]) == (7, "2001-09-09T01:46:47.000000Z")
    assert found.pop("chosen/final")["last"] == 0.5
    media = Path(engine_rig.experiment("1")["output"], "media")
    assert (media / "note/0.txt").read_text() == "hello"
    table = json.loads((media / "chosen/hparams/0.json").read_text())
    assert table == {"columns": ["name", "value"], "rows": [["lr", 0.1], ["optimizer", "sgd"]]}
    ((name, metric),) = found.items()
    assert (name.startswith("runs/"), name.endswith("/accuracy"), metric["last_step"]) == (True, True, 7)
