"""What a run is for, from `train -m` to a rerun from its capsule: through the command line, with jobs as processes."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

from tests.support.command import run_riseml
from tests.support.rig import Rig, single

NOTE = 'lr *warmup*: "3 epochs"\n\n* \u640d\u5931, \u00e9\t|\n'


def test_what_is_said_is_kept_from_the_start_to_a_rerun(process_rig: Rig, tmp_path: Path) -> None:
    rig = process_rig

    def riseml(*words: str, code: int = 0) -> str:
        done = run_riseml(words, tmp_path, rig.environ())
        assert done.returncode == code, done
        assert "Traceback" not in done.stderr
        return done.stdout if code == 0 else done.stderr

    said = {"name": "lr sweep", "tags": ["baseline", "lr"], "notes": "of the file"}
    (tmp_path / "riseml.yml").write_text(single("echo lr is {{lr}}", parameters={"lr": [1, 2]}, **said))
    riseml("train", "-d", "-m", NOTE)
    rig.submit(single("sleep 600"))
    rig.wait_state("2", "RUNNING")
    for member in "1.1", "1.2":
        rig.wait_closed(member)
    assert "lr is 2" in riseml("logs", "lr sweep.2", "--no-follow"), "a name stands for the ID of its set"
    riseml("tag", "1.2", "2", "best")
    riseml("note", "2", "while it runs")
    assert riseml("kill", "best", code=2).startswith("error: 'best' could be 1.2 (tag), 2 (tag)\n")
    riseml("archive", "1", "2")
    listed = json.loads(riseml("status", "-a", "--json"))["experiments"]
    assert [one["id"] for one in listed] == ["2"], "what runs stays in the list"
    riseml("kill", "2")
    rig.wait_closed("2")
    assert json.loads(riseml("status", "-a", "--json"))["experiments"] == []
    assert [one["id"] for one in json.loads(riseml("status", "--archived", "--json"))["experiments"]] == ["1", "2"]
    assert json.loads(riseml("show", "2", "--json"))["note"] == "while it runs", (
        "the decisions of the loop lost nothing"
    )
    riseml("archive", "1", "--remove")
    rig.kill()
    rig.start()  # a server that is killed loses nothing
    rows = list(csv.DictReader(io.StringIO(riseml("results", "--csv", "--where", "tag:best"))))
    assert [(row["id"], row["name"], row["tags"], row["note"]) for row in rows] == [
        ("1.2", "lr sweep", "best,baseline,lr", NOTE)
    ]
    output = json.loads(riseml("show", "1.2", "--json"))["output"]
    capsule = Path(output) / ".riseml"
    written = json.loads((capsule / "capsule.json").read_text())
    assert (written["name"], written["tags"], written["note"]) == ("lr sweep", ["baseline", "lr"], NOTE)
    riseml("rerun", str(capsule), "-d")
    again = json.loads(riseml("rerun", "1.2", "-d", "-m", "again", "--json"))
    assert (again["name"], again["tags"], again["note"]) == ("", ["best", "baseline", "lr"], "again")
    third = json.loads(riseml("show", "3", "--json"))
    assert (third["name"], third["tags"], third["note"]) == ("", ["baseline", "lr"], NOTE)
    for identity in "3", "4":
        rig.wait_closed(identity)
