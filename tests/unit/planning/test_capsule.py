"""The capsule of an experiment: valid, without secrets, and the same whatever the place of its jobs was."""

from __future__ import annotations

import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from riseml import wire
from riseml.base.annotations import Annotation
from riseml.base.names import HostName
from riseml.base.states import State
from riseml.model import Experiment, Origin
from riseml.planning.capsule import Circumstances, make_capsule, show_config, write_capsule
from riseml.planning.launch import CONTAINER_FOLDERS
from scripts.capsule_schema import SCHEMA, make_schema
from tests.unit.control.simulation import make_experiment, make_plan

SECRET = "geheim-8f3a"
CONFIG = f"""\
project: toaster
train:
  framework: tensorflow
  tensorflow: {{distributed: {{worker: 2, ps: 1}}}}
  env: [MODE={SECRET}, TOKEN]
  run: 'true'
"""
AROUND = Circumstances(
    "2.0", "/output/paul/toaster/4", CONTAINER_FOLDERS, packages={"base": ("numpy==2.0",)}, has_code=True
)


def make(**changes: object) -> Experiment:
    plan = make_plan("master", "worker.1", "ps.1")
    jobs = tuple(replace(job, run=("python train.py --seed {{seed}}",)) for job in plan.jobs)
    origin = Origin("riseml.yml", "a" * 40, clean=True, rerun_of="3")
    plan = replace(plan, jobs=jobs, parameters=(("seed", "42"), ("api-key", SECRET)), origin=origin)
    environment = (("MODE", SECRET), ("TOKEN", SECRET))
    return make_experiment(4, plan, snapshot="ab" * 32, environment=environment, **changes)


def capsule_of(experiment: Experiment) -> wire.Capsule:
    capsule = make_capsule(experiment, show_config(CONFIG), AROUND)
    found: wire.Capsule = json.loads(write_capsule(capsule))
    assert found == capsule
    Draft202012Validator(json.loads(SCHEMA.read_text())).validate(found)
    return found


def test_the_schema_is_that_of_the_code() -> None:
    assert SCHEMA.read_text() == make_schema(), "write it again with `python -m scripts.capsule_schema`"


def test_a_capsule_says_what_ran() -> None:
    capsule = capsule_of(make(state=State.FINISHED))
    assert (capsule["complete"], capsule["rerun_of"], capsule["seeds"]["seed"]) == (True, "3", "42")
    assert capsule["code"] == {
        "digest": "ab" * 32,
        "included": True,
        "file": "riseml.yml",
        "git": {"revision": "a" * 40, "clean": True},
    }
    assert capsule["environments"][0]["packages"] == ["numpy==2.0"]
    assert capsule["variables"] == {"passed": ["TOKEN"], "written": ["MODE"]}
    assert [job["part"] for job in capsule["jobs"]] == ["decides", "helps", "serves"]
    assert (capsule["name"], capsule["tags"], capsule["note"]) == ("", [], "")


@given(st.text(max_size=200))
def test_a_note_comes_back_from_a_capsule_as_it_was_written(note: str) -> None:
    around = replace(AROUND, annotation=Annotation("n", ("a", "b"), note))
    capsule = json.loads(write_capsule(make_capsule(make(), show_config(CONFIG), around)))
    assert (capsule["name"], capsule["tags"], capsule["note"]) == ("n", ["a", "b"], note)


def test_variables_have_names_and_no_values() -> None:
    capsule = capsule_of(make())
    assert capsule["jobs"][0]["hidden"] == ["MODE", "TOKEN", "API_KEY"]
    shown = json.dumps({**capsule, "parameters": {}})
    assert SECRET not in shown


def test_a_job_that_ran_at_a_port_of_its_machine_is_described_as_on_its_own_network() -> None:
    private = make()
    shared = tuple(replace(job, host=HostName("this-machine"), address="127.0.0.1", port=5000) for job in private.jobs)
    for experiment in (private, replace(private, jobs=shared)):
        master = capsule_of(experiment)["jobs"][0]["launch"]
        cluster = json.loads(master["variables"]["TF_CONFIG"])["cluster"]
        assert cluster["worker"] == ["worker-1.peer.riseml:2223"]
        assert "RISEML_PORT" not in master["variables"]
        assert "python train.py --seed 42" in master["command"][-1]
    assert capsule_of(replace(private, jobs=shared))["jobs"][0]["variables"]["RISEML_PORT"] == "5000"
