"""What MLflow's own client logs are metrics, with the values, steps and times of the client, and files of the output.
With Docker and as processes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.real.frameworks.test_toaster import find_cache
from tests.real.metrics.test_reports import read_metrics
from tests.support.rig import GO, Rig, single
from tests.support.wheels import install_packages

CLIENT = "mlflow-skinny==3.17.2"
TRAINING = """
import json, os, sys
sys.path.append(os.environ["DATA_DIR"])
import mlflow
from mlflow.entities import Metric
mlflow.set_experiment("digits")
client = mlflow.MlflowClient()
with mlflow.start_run(run_name="outer") as outer:
    mlflow.log_params({"lr": 0.1, "layers": 2})
    mlflow.set_tags({"team": "vision"})
    for step in range(50):
        mlflow.log_metric("loss", 1 / (step + 1), step=step)
    mlflow.log_metrics({"val/acc": 0.1, "val/f1": float("nan")}, step=7)
    client.log_batch(outer.info.run_id, [Metric("batch", n, 10**12 + n, n) for n in range(1000)])
    mlflow.log_text("hello", "notes/note.txt")
    mlflow.log_artifact("train.py")
    os.system(os.environ["WAIT"])
    with mlflow.start_run(run_name="inner", nested=True):
        mlflow.log_metric("loss", 9, step=1)
with mlflow.start_run(run_name="second"):
    mlflow.log_metric("loss", 0.25, step=3)
runs = client.search_runs([outer.info.experiment_id], filter_string="params.lr = '0.1'")
assert [run.data.params for run in runs] == [{"lr": "0.1", "layers": "2"}]
assert open(client.download_artifacts(outer.info.run_id, "notes/note.txt")).read() == "hello"
last = client.get_metric_history(outer.info.run_id, "loss")[-1]
print(json.dumps([outer.info.artifact_uri, last.value, last.step, last.timestamp]))
"""


@pytest.fixture
def mlflow_rig(tmp_path: Path, host: str | None) -> Iterator[Rig]:
    packages = find_cache() / CLIENT
    install_packages(packages, CLIENT)
    with Rig(tmp_path / "home", host, RISEML_DATA=str(packages)) as rig:
        yield rig


def test_runs_are_metrics_and_files(mlflow_rig: Rig) -> None:
    """A server is killed while they are read. A run that is not the first has its name before its metrics."""
    config = single("python3 train.py", track=["mlflow"], env={"WAIT": GO}, resources={"cpus": 1, "mem": "1GiB"})
    mlflow_rig.submit(config, {"train.py": TRAINING})
    mlflow_rig.wait_state("1", "RUNNING")
    mlflow_rig.wait("the first run is read", lambda: read_metrics(mlflow_rig, "1").get("loss"))
    mlflow_rig.kill()
    mlflow_rig.start()
    mlflow_rig.go_file("1").touch()
    assert mlflow_rig.wait_closed("1")["state"] == "FINISHED", mlflow_rig.lines("1.train")
    found = read_metrics(mlflow_rig, "1")
    assert {name: (metric["count"], metric["last"], metric["last_step"]) for name, metric in found.items()} == {
        "loss": (50, 0.02, 49),
        "val/acc": (1, 0.1, 7),
        "val/f1": (1, "nan", 7),
        "batch": (1000, 999, 999),
        "inner/loss": (1, 9, 1),
        "second/loss": (1, 0.25, 3),
    }
    (line,) = [line for line in mlflow_rig.lines("1.train") if line.startswith("1.train [")]
    artifacts, value, step, at = json.loads(line.removeprefix("1.train "))
    (last,) = mlflow_rig.get("/v1/experiments/1/metrics/history", metric="loss")["buckets"][-1:]
    assert (last["last_step"], last["min"]) == (step, value)
    assert math.isclose(datetime.fromisoformat(last["last_at"]).timestamp(), at / 1000, abs_tol=1e-5)
    (first,) = mlflow_rig.get("/v1/experiments/1/metrics/history", metric="batch")["buckets"][:1]
    assert first["first_at"] == datetime.fromtimestamp(10**9, UTC).strftime("%Y-%m-%dT%H:%M:%S.000000Z")
    output = Path(mlflow_rig.experiment("1")["output"])
    run = output.joinpath(*Path(artifacts).parts[-4:-1])
    assert run.parts[-3] == "mlruns"
    assert (run / "artifacts" / "notes" / "note.txt").read_text() == "hello"
    assert (run / "artifacts" / "train.py").read_text() == TRAINING
    assert ((run / "params" / "lr").read_text(), (run / "tags" / "team").read_text()) == ("0.1", "vision")
