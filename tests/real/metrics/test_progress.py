"""How far real jobs are, with Docker and as processes, also after the server was killed."""

from __future__ import annotations

import json
from typing import Any

from tests.support.receiver import open_receiver
from tests.support.rig import Rig, single

TRAINING = """
import itertools, os, time, riseml
for step in itertools.count():
    if os.environ["WAY"] == "reported":
        riseml.progress(250, 1000)
    else:
        print(f"Epoch 1/4, step {step}/1000000", flush=True)
    time.sleep(0.05)
"""


def read_progress(rig: Rig, name: str) -> dict[str, Any] | None:
    found: dict[str, Any] | None = rig.get(f"/v1/experiments/{name}")["progress"]
    return found


def test_the_progress_of_a_job_is_known_while_it_runs(rig: Rig) -> None:
    for way in ("reported", "printed"):
        rig.submit(single(f"WAY={way} python3 train.py"), {"train.py": TRAINING})
    for turn in ("the server", "the next server"):
        reported = rig.wait(f"{turn} knows what a job reports", lambda: read_progress(rig, "1"))
        assert (reported["done"], reported["of"], reported["fraction"], reported["job"]) == (250, 1000, 0.25, "train")
        printed = rig.wait(f"{turn} reads what a job prints", lambda: read_progress(rig, "2"))
        assert (printed["done"], printed["of"], printed["unit"]) == (1, 4, "epoch")
        rig.kill()
        rig.start()
    rig.wait("it is in the list", lambda: all(one["progress"] for one in rig.get("/v1/experiments")["experiments"]))
    (sample,) = rig.get("/v1/experiments/1/samples")["samples"]
    assert sample["progress"]["done"] == 250
    for name in ("1", "2"):
        rig.post(f"/v1/experiments/{name}/kill")
        assert rig.wait_closed(name)["progress"] is None


BARS = """
import sys
for epoch in (1, 2):
    print(f"Epoch {epoch}/2", flush=True)
    for step in range(1, 201):
        print(f"{step}/200 [{'=' * 10}>{'.' * 10}] - ETA: 1s", flush=True)
    for step in range(0, 101, 4):
        print(f"\\r{step:3}%|####| {step}/100 [00:01<00:01, 3.40it/s]", end="", flush=True)
    print()
"""


def test_the_log_has_the_last_state_of_each_bar_unless_it_keeps_all(rig: Rig) -> None:
    rig.submit(single("python3 bars.py"), {"bars.py": BARS})
    rig.submit(single("python3 bars.py", log={"bars": "all"}), {"bars.py": BARS})
    assert rig.wait_closed("1")["state"] == rig.wait_closed("2")["state"] == "FINISHED"
    last = "200/200 [==========>..........] - ETA: 1s"
    lines = [line.removeprefix("1.train ") for line in rig.lines("1.train")]
    assert [line.rpartition("\r")[2] for line in lines] == [
        *("Epoch 1/2", last, "100%|####| 100/100 [00:01<00:01, 3.40it/s]"),
        *("Epoch 2/2", last, "100%|####| 100/100 [00:01<00:01, 3.40it/s]"),
    ]
    every = rig.lines("2.train")
    assert (len(every), every[-1].count("\r")) == (2 * 202, 26)


def test_a_loss_that_is_not_a_number_is_remarked_while_it_runs(rig: Rig) -> None:
    program = (
        "import time, riseml\n"
        "for step in range(20): riseml.report(step=step, loss=1 / (step + 1) if step < 10 else float('nan'))\n"
        "time.sleep(600)\n"
    )
    stalled = {"metric": "loss", "goal": "minimize", "patience": 10}
    with open_receiver() as receiver:
        file = rig.home / "notify.yml"
        file.write_text(json.dumps({"webhooks": [{"name": "team", "url": receiver.url, "events": ["remark"]}]}))
        file.chmod(0o600)
        check_remarks(rig, program, stalled)
        if rig.engine is None:  # the server looks every half minute: on one host
            told = rig.wait("the webhook is told of both", lambda: receiver.received[1:] and receiver.received)
            bodies = [json.loads(one.body) for one in told]
            found = {(body["event"], body["experiment"]["id"], body["remark"]["kind"]) for body in bodies}
            assert found == {("experiment.remark", "1", "nan"), ("experiment.remark", "1", "stalled")}
        rig.post("/v1/experiments/1/kill")
        assert rig.wait_closed("1")["remarks"] == []


def check_remarks(rig: Rig, program: str, stalled: dict[str, object]) -> None:
    rig.submit(single("python3 train.py", on={"stalled": stalled}), {"train.py": program})
    rig.wait("both are remarked", lambda: len(rig.get("/v1/experiments/1")["remarks"]) > 1)
    first, second = rig.get("/v1/experiments/1")["remarks"]
    assert first == {"kind": "nan", "job": None, "text": "loss is nan at step 19", "since": None}
    assert second["text"] == "loss has no better value since step 9, which had 0.1"


LOST = """
import os, time, riseml
for step in range(8):
    riseml.report(step=step, loss=1 / (step + 1) if step < 5 else float("nan"))
while True:
    time.sleep(600)
"""


def test_a_loss_that_is_not_a_number_ends_the_experiment_once_also_after_the_server_was_killed(rig: Rig) -> None:
    rig.submit(single("python3 train.py", on={"nan": "fail"}, retry=2), {"train.py": LOST})
    rig.submit(single("python3 train.py", on={"nan": "stop", "metrics": ["loss"]}), {"train.py": LOST})
    rig.submit(single("python3 train.py", on={"nan": "stop", "metrics": ["val_loss"]}), {"train.py": LOST})
    rig.wait("one has its end", lambda: rig.get("/v1/experiments/1")["state"] in ("RUNNING", "FAILED"))
    rig.kill()
    rig.start()
    for name, state in (("1", "FAILED"), ("2", "FINISHED")):
        ended = rig.wait_closed(name)
        assert (ended["state"], ended["reason"]) == (state, "NOT_FINITE")
        assert ended["message"] == "loss is nan at step 7"
        assert {job["attempt"] for job in ended["jobs"]} == {1}
    assert rig.get("/v1/experiments/3")["state"] == "RUNNING", "its metric is another one"
    rig.post("/v1/experiments/3/kill")
    rig.wait_closed("3")
