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


_WAITS = 'until [ -e "$OUTPUT_DIR/../go" ]; do sleep 0.02; done; echo "riseml.report {\\"score\\": {{x}}}"'


def test_a_set_is_paused_changed_and_stopped_and_a_killed_server_knows_it(tmp_path: Path) -> None:
    """A grid (1) and a search (2), whose experiments wait for a file in the folder of their set."""
    train: dict[str, Any] = {"image": BASE, "run": _WAITS, "resources": {"cpus": 0.1, "mem": "64MiB"}}
    search = {"method": "random", "trials": MANY, "metric": "score", "goal": "maximize", "seed": 7}
    spaces = ({"parameters": {"x": [1, 2, 3, 4]}}, {"parameters": {"x": {"uniform": {"min": 0, "max": 1}}}})
    with Rig(tmp_path / "home", None) as rig:

        def change(name: str, **changes: Any) -> None:
            answer = rig.post(
                f"/v1/experiments/{name}/search", {"paused": None, "concurrency": None, "stop": False} | changes
            )
            assert answer.status_code == 200, answer.text

        def list_states(name: str) -> list[str]:
            return [member["state"] for member in rig.experiment(name)["experiments"]]

        def wait_first(name: str, state: str) -> None:
            rig.wait(f"{name}.1 is {state}", lambda: list_states(name)[0] == state)

        def wait_running(name: str, count: int) -> None:
            rig.wait(f"{count} of {name} run", lambda: list_states(name).count("RUNNING") == count)

        rig.submit(json.dumps({"project": "toaster", "train": train | spaces[0]}))
        rig.submit(json.dumps({"project": "toaster", "train": train | spaces[1] | {"search": search}}))
        for name in ("1", "2"):
            wait_first(name, "RUNNING")
            change(name, paused=True)
        rig.kill()
        rig.start()
        for name in ("1", "2"):
            Path(rig.experiment(name)["output"], "go").touch()
            wait_first(name, "FINISHED")
            Path(rig.experiment(name)["output"], "go").unlink()
        paused = rig.experiment("1")
        assert (paused["reason"], list_states("1")[1:]) == ("PAUSED", ["PENDING"] * 3)
        assert (rig.experiment("2")["reason"], len(list_states("2"))) == ("PAUSED", 1)
        rig.wait("2.1 has its result", lambda: rig.experiment("2")["search"]["complete"])
        assert rig.experiment("2")["search"]["message"].startswith("trial 1 of 200, paused, best 2.1 score")
        for name in ("1", "2"):
            change(name, paused=False, concurrency=2)
            wait_running(name, 2)
            change(name, stop=True)
            Path(rig.experiment(name)["output"], "go").touch()
        assert [member["state"] for member in rig.wait_closed("1")["experiments"]] == ["FINISHED"] * 3 + ["KILLED"]
        ended = rig.wait_closed("2")
        assert (ended["state"], ended["search"]["end"], ended["search"]["complete"]) == ("FINISHED", "STOPPED", 3)


def test_a_search_fails_when_its_first_trials_fail_or_report_no_metric(tmp_path: Path) -> None:
    """The state, the message and the end of the log, from which `riseml train` takes its exit code, say the same."""
    with Rig(tmp_path / "home", None) as rig:
        failing = json.loads(make_config(trials=MANY))
        failing["train"] |= {"run": "exit 7  # {{x}} {{hold}}", "concurrency": 2}
        for name, config in (("1", json.dumps(failing)), ("2", make_config(metric="scor", trials=2))):
            rig.submit(config)
            ended, end = rig.wait_closed(name), rig.logs(name)[-1]
            assert (ended["state"], end["state"], ended["reason"]) == ("FAILED", "FAILED", end["reason"])
            assert ended["message"] == end["message"]
            states = [entry["state"] for entry in rig.logs(name) if entry["type"] == "state" and entry["id"] == name]
            assert states[-1] == "FAILED"
        first = rig.experiment("1")
        assert (first["reason"], first["search"]["end"]) == ("TOO_MANY_FAILED", "FIRST_FAILED")
        assert first["search"]["made"] in (5, 6), "one more may have run when the fifth one failed"
        assert first["message"].endswith("the first 5 trials failed, and none ended well")
        second = rig.experiment("2")
        assert (second["reason"], second["message"]) == (
            "NO_METRIC",
            "2 of 2 finished; no trial reported scor; there is score",
        )
