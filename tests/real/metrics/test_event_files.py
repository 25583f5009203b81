"""Event files of TensorBoard are metrics, with Docker and as processes."""

from __future__ import annotations

from pathlib import Path

from tests.real.metrics.test_reports import read_metrics
from tests.support.rig import GO, Rig, single

WRITER = (Path(__file__).parents[2] / "support" / "event_files.py").read_text()
TRAINING = """
import os, sys, time, riseml
from event_files import make_event
attempt = int(os.environ["RISEML_ATTEMPT"])
folder = os.environ["OUTPUT_DIR"] + "/train"
os.makedirs(folder, exist_ok=True)
name = "events.out.tfevents.%d.%s.%d" % (time.time(), os.uname().nodename, attempt)
with open(folder + "/" + name, "wb", 0) as file:
    file.write(make_event(0))
    for step in range(100):
        file.write(make_event(step, loss=1 / (step + attempt), same=step / 4))
        riseml.report({"train/same": step / 4, "train/loss": step}, step=step)
    file.write(make_event(100, loss=7)[:20])
if attempt == 1:
    os.system(os.environ["WAIT"])
    sys.exit(7)
"""


def test_scalars_are_metrics_once(rig: Rig) -> None:
    """A server is killed while they are read. The second attempt sees the files of the first one, and is over before
    its reader would begin. A metric that the code also reports is one curve, unless the values differ.
    """
    rig.submit(single("python3 train.py", retry=1, env={"WAIT": GO}), {"train.py": TRAINING, "event_files.py": WRITER})
    rig.wait("event files are read", lambda: read_metrics(rig, "1").get("train/loss (tensorboard)"))
    rig.kill()
    rig.start()
    rig.go_file("1").touch()
    rig.wait_closed("1")
    assert rig.lines("1.train") == []
    found = read_metrics(rig, "1")
    assert {name: metric["count"] for name, metric in found.items()} == {
        "train/same": 200,
        "train/loss": 200,
        "train/loss (tensorboard)": 200,
    }
    loss = found["train/loss (tensorboard)"]
    assert (loss["min"], loss["min_step"], loss["last_step"], loss["attempt"]) == (0.00990099, 99, 99, 2)
