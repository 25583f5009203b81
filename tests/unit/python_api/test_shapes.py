"""The shapes of riseml.yml for programs are those of its schema, and a program may submit one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import riseml
from riseml.spec.config.loader import load_config
from scripts.spec_shapes import SHAPES, write_shapes

if TYPE_CHECKING:
    from tests.unit.cli.fake_server import FakeServer

SPEC: riseml.SpecDict = {
    "project": "toaster",
    "train": {
        "framework": "tensorflow",
        "run": ["python prepare.py", "python train.py --lr {{lr}}"],
        "resources": {"gpus": 1, "mem": "4GiB"},
        "tensorflow": {"version": "2.21.0", "distributed": {"worker": {"count": 2}, "ps": 1}},
        "parameters": {"lr": [0.1, 0.01], "note": "a: b # c"},
        "data": [{"from": "s3://datasets/mnist", "to": "mnist"}],
        "retry": {"max": 2, "on": ["host-lost"]},
        "env": {"MODE": "fast", "TOKEN": {"secret": "hf"}},
    },
}


def test_the_shapes_are_those_of_the_schema() -> None:
    assert SHAPES.read_text() == write_shapes(), "run `.venv/bin/python -m scripts.spec_shapes`"


def test_a_type_checker_finds_what_is_wrong_with_a_spec() -> None:
    """`make check` fails here where it does not: an ignored error that is none is an error."""
    section: riseml.shapes.ResourcesDict = {"gpu_count": 1}  # type: ignore[typeddict-unknown-key]
    train: riseml.TrainDict = {"framework": "theano", "resources": section}  # type: ignore[typeddict-item]
    spec: riseml.SpecDict = {"train": train}  # type: ignore[typeddict-item]
    assert spec["train"]["resources"] == {"gpu_count": 1}


def test_a_spec_is_submitted_as_the_riseml_yml_that_it_stands_for(
    fake_server: FakeServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RISEML_HOME", str(fake_server.home))
    monkeypatch.chdir(folder)
    run = riseml.submit(SPEC, settings={"train.resources.gpus": 2})
    body = fake_server.bodies[-1]
    assert (run.id, body["file"], body["project"]) == ("4", "spec", "toaster")
    train = load_config(body["config"], body["file"]).train
    assert (train.run, train.parameters[0].values) == (tuple(SPEC["train"]["run"]), ("0.1", "0.01"))
    assert (train.resources.gpus, train.policy.data[0].url) == (1, "s3://datasets/mnist")
    assert body["settings"] == [["train.resources.gpus", "2"]]
