"""Points over their seeds, and which value of a run counts, with real jobs as processes of this machine."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.real.api.test_dry_run import riseml
from tests.support.rig import BASE, Rig

EXAMPLE = Path(__file__).parents[3] / "examples" / "seeds"

_RUN = """
[ "$SEED" = {{seed}} ] || exit 9
report() { printf 'riseml.report {"step": %s, "score": %s}\\n' "$1" "$2"; }
case {{kind}} in
steady) report 1 0.6; report 2 0.7; report 3 0.5 ;;
diverged) report 1 0.95; report 2 NaN ;;
retried) [ "$RISEML_ATTEMPT" != 1 ] || { report 1 0.99; exit 1; }; report 1 0.4; report 2 0.3 ;;
esac
"""


def make_config(objective: str) -> str:
    train = {
        "image": BASE,
        "run": _RUN,
        "resources": {"cpus": 0.1, "mem": "64MiB"},
        "parameters": {"kind": ["steady", "diverged", "retried"]},
        "repeat": 2,
        "retry": 1,
        "search": {"method": "grid", "metric": "score", "goal": "maximize", "objective": objective},
        "concurrency": 6,
    }
    return json.dumps({"project": "toaster", "train": train})


def test_points_are_compared_by_what_counts_of_their_runs(tmp_path: Path) -> None:
    files = {"train_moons.py": (EXAMPLE / "train_moons.py").read_text().replace("EPOCHS = 30", "EPOCHS = 6")}
    example = (EXAMPLE / "riseml.yml").read_text()
    assert "run: python train" in example and files["train_moons.py"].count("EPOCHS = 6") == 1
    folder = tmp_path / "project"
    folder.mkdir()
    with Rig(tmp_path / "home", None) as rig:
        rig.submit(make_config("best"))
        rig.submit(make_config("mean(2)"))
        rig.submit(example.replace("run: python ", f"run: {sys.executable} "), files)
        values = {}
        for name in ("1", "2"):
            ended = rig.wait_closed(name)
            best = ended["search"]["best"]
            assert (best["id"], best["parameters"], best["runs"]) == (f"{name}.1", {"kind": "steady"}, 2)
            assert best["value"] == pytest.approx(0.7 if name == "1" else 0.6)
            shown = rig.get("/v1/results", of=name)
            values[name] = {one["parameters"]["kind"]: one["value"] for one in shown["experiments"]}
        assert values["1"] == {"steady": 0.7, "diverged": None, "retried": 0.4}
        assert values["2"] == {"steady": pytest.approx(0.6), "diverged": None, "retried": pytest.approx(0.35)}
        ended = rig.wait_closed("3")
        assert ended["message"].startswith("15 of 15 finished, best 3."), ended["message"]
        rows = [*csv.DictReader(riseml(rig, folder, "results", "3", "--group", "--csv").out.splitlines())]
        assert [(row["rank"], row["n"]) for row in rows] == [("1", "5"), ("2", "5"), ("3", "5")]
        assert all(float(row["low"]) <= float(row["mean"]) <= float(row["high"]) for row in rows)
        compared = riseml(rig, folder, "results", "--compare", "3.1", "3.11").out
        assert "(p" in compared and "n = 5 and 5" in compared
        assert riseml(rig, folder, "plot", "3", "--group", "--svg", "seeds.svg").code == 0
        drawn = ElementTree.parse(folder / "seeds.svg").getroot()  # a file of this test
        assert sum(element.tag.endswith("polygon") for element in drawn) == 3
