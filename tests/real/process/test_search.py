"""A search over real jobs, as processes of this machine: trials, early stopping, more trials, a kill."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.rig import BASE, Rig
from tests.support.waiting import DEADLINE

_RUN = """
trap '' TERM
score={{x}}
[ "{{hold}}" = no ] || case "$EXPERIMENT_ID" in
1.1) score=2 ;;
*) until [ -e "$OUTPUT_DIR/../judged" ]; do sleep 0.05; done ;;
esac
printf 'riseml.report {"step": %s, "score": %s}\\n' 1 "$score"
[ "{{hold}}" = no ] || until [ -e "$OUTPUT_DIR/../go" ]; do sleep 0.05; done
"""

MANY = 200  # trials: more than a search makes before the test ends it, however late that is


def make_config(hold: str = "no", **search: Any) -> str:
    """Return a search that maximizes the parameter itself. Its jobs ignore SIGTERM; with `hold` the first trial
    reports the best score at once, the others report when the file `judged` is in the folder of the set, and all end
    when the file `go` is there.
    """
    train = {
        "image": BASE,
        "run": _RUN,
        "resources": {"cpus": 0.1, "mem": "64MiB"},
        "parameters": {"x": {"uniform": {"min": 0, "max": 1}}, "hold": hold},
        "search": {"method": "random", "trials": 3, "metric": "score", "goal": "maximize", "seed": 7, **search},
        "env": {"TOKEN": "t"},
    }
    return json.dumps({"project": "toaster", "train": train})


def read_points(found: dict[str, Any]) -> list[str]:
    return [member["parameters"]["x"] for member in found["experiments"]]


def test_a_search_makes_its_trials_and_takes_more(tmp_path: Path) -> None:
    with Rig(tmp_path / "home", None) as rig:
        rig.submit(make_config())
        first = rig.wait_closed("1")
        search, points = first["search"], read_points(first)
        assert (search["made"], search["complete"], search["end"]) == (3, 3, "COMPLETED")
        assert search["best"]["value"] == max(map(float, points))
        assert search["message"].startswith(f"trial 3 of 3, best {search['best']['id']} score 0.")
        ended = [entry for entry in rig.logs("1") if entry["type"] == "state" and entry["id"] == "1"]
        assert [entry["state"] for entry in ended][-1] == "FINISHED"
        assert [entry["state"] for entry in ended].count("FINISHED") == 1, "the set ends once, with its search"
        assert rig.logs("1")[-1]["message"] == first["message"]
        refused = rig.post("/v1/experiments/1.1/trials", {"trials": 1, "environment": {}})
        assert refused.status_code == 400
        added = rig.post("/v1/experiments/1/trials", {"trials": 2, "environment": {}})
        assert added.status_code == 200, added.text
        more = rig.wait_closed("1")
        assert read_points(more)[:3] == points, "no trial changes"
        assert (more["search"]["made"], more["search"]["trials"]) == (5, 5)
        rig.submit(make_config())
        assert read_points(rig.wait_closed("2")) == points, "the same seed makes the same trials"
        rig.submit(make_config(metric="scor", trials=1))
        wrong = "1 of 1 finished; no trial reported scor; there is score"
        assert (rig.wait_closed("3")["message"], rig.logs("3")[-1]["message"]) == (wrong, wrong)


def test_a_trial_that_does_worse_stops_and_a_kill_ends_the_search(tmp_path: Path) -> None:
    """A trial that ignores SIGTERM stops as well, long before its `stop_grace`."""
    with Rig(tmp_path / "home", None) as rig:
        config = json.loads(make_config(hold="yes", trials=MANY, stop={"method": "asha", "factor": 2}))
        config["train"] |= {"concurrency": 2, "stop_grace": 2 * DEADLINE}
        rig.submit(json.dumps(config))

        def find_stopped() -> dict[str, Any] | None:
            found = rig.experiment("1")
            return found if found["search"]["stopped"] >= 2 else None

        rig.wait("the first trial has reported", lambda: rig.experiment("1.1")["metrics"])
        Path(rig.experiment("1")["output"], "judged").touch()
        found = rig.wait("two trials are stopped early", find_stopped)
        stopped = [member for member in found["experiments"] if member["reason"] == "STOPPED_EARLY"]
        assert {member["state"] for member in stopped} == {"FINISHED"}, "it is not a failure"
        assert "1.1" not in [member["id"] for member in stopped], "its score is the best"
        rig.post("/v1/experiments/1/kill")
        Path(found["output"], "go").touch()  # the others ignore the SIGTERM of the kill, and have all of `stop_grace`
        end = rig.wait_closed("1")
        assert (end["search"]["end"], end["search"]["running"]) == ("KILLED", 0)
        assert end["search"]["made"] < MANY
