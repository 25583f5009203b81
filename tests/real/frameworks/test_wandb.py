"""What wandb logs without a connection is metrics, with the values, steps and times of its client, and it calls nobody.
With Docker and as processes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from tests.real.frameworks.test_toaster import find_cache
from tests.real.metrics.test_reports import read_metrics
from tests.support.rig import GO, Rig, single
from tests.support.wheels import install_packages

CLIENT = "wandb==0.31.0"
TRAINING = """
import json, os, socket, sys, threading, time
calls = []
proxy = socket.create_server(("127.0.0.1", 0))
def count():
    while True:
        calls.append(proxy.accept()[0].recv(1000))
threading.Thread(target=count, daemon=True).start()
os.environ["HTTP_PROXY"] = os.environ["HTTPS_PROXY"] = "http://127.0.0.1:%d" % proxy.getsockname()[1]
sys.path.append(os.environ["DATA_DIR"])
import wandb
fast = wandb.Settings(x_transaction_log_flush_interval=0.5)
run = wandb.init(project="digits", name="outer", config={"lr": 0.1, "net": {"layers": 2}}, settings=fast)
for step in range(50):
    run.log({"loss": 1 / (step + 1), "val": {"acc": step, "note": "words", "done": True}})
middle = time.time()
run.log({"late": float("nan"), "table": wandb.Table(columns=["size"], data=[[7]])}, step=70)
os.system(os.environ["WAIT"])
for step in range(71, 3071):
    run.log({"many": step}, step=step)
run.config.update({"epochs": 3})
run.summary["best"] = 0.5
run.finish()
with wandb.init(project="digits", name="second") as second:
    second.log({"loss": 9}, step=3)
print("middle", json.dumps([middle, calls]), flush=True)
"""


@pytest.fixture
def wandb_rig(tmp_path: Path, host: str | None) -> Iterator[Rig]:
    packages = find_cache() / CLIENT
    install_packages(packages, CLIENT)
    with Rig(tmp_path / "home", host, RISEML_DATA=str(packages)) as rig:
        yield rig


def test_runs_are_metrics_and_files(wandb_rig: Rig) -> None:
    """A server is killed while they are read. A run that is not the first has its name before its metrics."""
    config = single("python3 train.py", track=["wandb"], env={"WAIT": GO}, resources={"cpus": 1, "mem": "1GiB"})
    wandb_rig.submit(config, {"train.py": TRAINING})
    wandb_rig.wait("the first values are read", lambda: read_metrics(wandb_rig, "1").get("loss"))
    wandb_rig.kill()
    wandb_rig.start()
    wandb_rig.go_file("1").touch()
    assert wandb_rig.wait_closed("1")["state"] == "FINISHED", wandb_rig.lines("1.train")
    found = read_metrics(wandb_rig, "1")
    assert {name: (metric["count"], metric["last"], metric["last_step"]) for name, metric in found.items()} == {
        "loss": (50, 0.02, 49),
        "val.acc": (50, 49, 49),
        "late": (1, "nan", 70),
        "many": (3000, 3070, 3070),
        "best": (1, 0.5, None),
        "second/loss": (1, 9, 3),
    }
    (line,) = [line for line in wandb_rig.lines("1.train") if line.startswith("1.train middle ")]
    middle, calls = json.loads(line.removeprefix("1.train middle "))
    assert calls == []
    (late,) = wandb_rig.get("/v1/experiments/1/metrics/history", metric="late")["buckets"]
    assert abs(datetime.fromisoformat(late["last_at"]).timestamp() - middle) < 60
    values = wandb_rig.get("/v1/experiments/1/metrics/history", metric="loss")["buckets"]
    assert [(value["first_step"], value["min"]) for value in values] == [(step, 1 / (step + 1)) for step in range(50)]
    runs = Path(wandb_rig.experiment("1")["output"], "wandb")
    (first, _) = sorted(runs.glob("offline-run-*"))
    assert json.loads((first / "config.json").read_text()) == {"lr": 0.1, "net": {"layers": 2}, "epochs": 3}
    (table,) = first.rglob("*.table.json")
    assert json.loads(table.read_text()) == {"columns": ["size"], "data": [[7]]}
