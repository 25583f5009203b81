"""Output folders and riseml-configuration.yml in them: parameters as numbers, and in the end the results."""

from __future__ import annotations

import math
from dataclasses import replace

import yaml

from riseml.base.states import State
from riseml.files.storage.outputs import describe_run
from riseml.model import Lineage
from tests.unit.cli.result_rows import make_metric
from tests.unit.control.simulation import make_experiment, make_plan

CONFIG = "project: toaster\ntrain: {image: a, run: b, env: {TOKEN: geheim}}\n"
PARAMETERS = (("lr", "0.001"), ("epochs", "20"), ("name", "007"), ("rate", "1e5"), ("version", "2.10"))


def test_the_record_has_numbers_and_no_values_of_variables() -> None:
    experiment = make_experiment(4, replace(make_plan("train"), parameters=PARAMETERS))
    text = describe_run(experiment, CONFIG)
    record = yaml.safe_load(text)
    assert record["params"] == {"lr": 0.001, "epochs": 20, "name": "007", "rate": "1e5", "version": "2.10"}
    quoted = "  name: '007'\n  rate: '1e5'\n  version: '2.10'\n"
    assert quoted in text, "no reader of YAML 1.2 takes 1e5 for a number"
    assert "results" not in record
    assert "geheim" not in text


def test_the_record_of_a_trial_of_a_population_names_its_parent() -> None:
    experiment = make_experiment(9, make_plan("train"), number=144, sub=9)
    read = [
        yaml.safe_load(describe_run(replace(experiment, plan=replace(experiment.plan, lineage=lineage)), CONFIG))
        for lineage in (None, Lineage(1), Lineage(2, parent=3, parent_record=3))
    ]
    found = [(record.get("generation"), record.get("parent")) for record in read]
    assert found == [(None, None), (1, None), (2, "paul.144.3")]


def test_the_record_of_an_end_has_the_results() -> None:
    experiment = replace(make_experiment(4, make_plan("train")), state=State.FINISHED)
    results = {"accuracy": make_metric("accuracy", 0.5, 0.25), "loss": make_metric("loss", float("nan"))}
    record = yaml.safe_load(describe_run(experiment, CONFIG, results))
    assert record["state"] == "FINISHED"
    assert record["results"]["accuracy"] == {
        **{"last": 0.25, "last_step": 3, "min": 0.25, "min_step": 1, "max": 0.5, "max_step": 1, "count": 2},
    }
    assert math.isnan(record["results"]["loss"]["last"])
    assert record["results"]["loss"]["max"] is None
    assert yaml.safe_load(describe_run(experiment, CONFIG, {}))["results"] == {}
