"""Dataclasses and example file agree with the schema of riseml.yml."""

from __future__ import annotations

import enum
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from riseml.spec.config import types
from riseml.spec.config.loader import check_config
from riseml.spec.scalars.quantities import parse_duration, parse_memory
from riseml.spec.scalars.texts import BadText
from riseml.spec.schema.contract import CONFIG_CONTRACT
from riseml.spec.yaml.problems import KeyPath

ROOT = Path(__file__).parents[3]


KEYS = dict(CONFIG_CONTRACT.walk())


def test_the_schema_is_valid_json_schema() -> None:
    Draft202012Validator.check_schema(CONFIG_CONTRACT.schema)
    assert CONFIG_CONTRACT.schema["$schema"].endswith("2020-12/schema")


@pytest.mark.parametrize("path", KEYS, ids=lambda path: ".".join(map(str, path)))
def test_every_key_has_title_description_and_examples(path: KeyPath) -> None:
    schema = KEYS[path]
    assert {"title", "description", "examples", "type"} <= set(schema)
    assert schema["description"].endswith(".")
    validator = Draft202012Validator({**schema, "$defs": CONFIG_CONTRACT.schema["$defs"]})
    for example in [*schema["examples"], *([schema["default"]] if "default" in schema else [])]:
        assert validator.is_valid(example), example


def test_no_map_accepts_unknown_keys() -> None:
    for path, schema in CONFIG_CONTRACT.walk():
        if "properties" in schema:
            assert schema["additionalProperties"] is False, path


@pytest.mark.parametrize(
    ("path", "cls", "other"),
    [
        ((), types.Spec, {"notes", "topologies"}),
        (("train", "resources"), types.Resources, set()),
        (("train", "limits"), types.Limits, set()),
        (("train", "retry"), types.Retry, set()),
        (("train", "save"), types.SaveSection, set()),
        (("train", "tensorflow"), types.TensorFlow, set()),
        (("train", "tensorflow", "tensorboard"), types.TensorBoard, set()),
        (("train", "pytorch"), types.PyTorch, set()),
        (("train", "jax"), types.JAX, set()),
        (("train", "roles", "any"), types.RoleSection, {"name"}),
        (("train", "search"), types.SearchSection, set()),
        (("train", "search", "stop"), types.StopRule, set()),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_sections_have_the_fields_of_their_dataclass(path: KeyPath, cls: Any, other: set[str]) -> None:
    assert set(CONFIG_CONTRACT.at(path)["properties"]) == {field.name for field in fields(cls)} - other


def test_the_section_train_has_the_fields_of_its_dataclass_and_of_its_policy() -> None:
    own = {field.name for field in fields(types.Train)} - {"policy"}
    assert set(CONFIG_CONTRACT.at(("train",))["properties"]) == own | {field.name for field in fields(types.RunPolicy)}


def test_roles_of_a_cluster_have_their_resources() -> None:
    roles = {field.name.removesuffix("_resources") for field in fields(types.Distributed) if "_resources" in field.name}
    assert set(CONFIG_CONTRACT.at(("train", "tensorflow", "distributed"))["properties"]) == roles | {"chief"}


@pytest.mark.parametrize(
    ("path", "members"),
    [
        (("train", "tensorflow", "distributed", "chief"), types.ChiefKey),
        (("train", "retry", "scope"), types.RetryScope),
        (("train", "roles", "any", "ends"), types.RoleEnd),
        (("train", "retry", "on", 0), types.RetryOn),
        (("train", "search", "method"), types.SearchMethod),
        (("train", "search", "goal"), types.Goal),
        (("train", "shell"), types.Shell),
        (("train", "search", "stop", "method"), types.StopMethod),
    ],
)
def test_choices_are_the_members_of_the_enum(path: KeyPath, members: type[enum.Enum]) -> None:
    assert set(CONFIG_CONTRACT.at(path)["enum"]) == {member.value for member in members}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("train", "resources", "cpus"), types.DEFAULT_CPUS),
        (("train", "resources", "gpus"), types.Resources().gpus),
        (("train", "tensorflow", "version"), types.DEFAULT_TENSORFLOW),
        (("train", "pytorch", "version"), types.DEFAULT_PYTORCH),
        (("train", "jax", "version"), types.DEFAULT_JAX),
        (("train", "tensorflow", "tensorboard"), types.TensorFlow().tensorboard is not None),
        (("train", "concurrency"), types.Train(()).concurrency),
        (("train", "priority"), types.DEFAULT_POLICY.priority),
        (("train", "retry"), types.Retry().max),
        (("train", "search", "stop", "after"), types.DEFAULT_AFTER),
        (("train", "search", "stop", "factor"), types.DEFAULT_FACTOR),
        (("train", "retry", "scope"), types.Retry().scope.value),
        (("train", "shell"), types.Train(()).shell.value),
    ],
)
def test_defaults_are_those_of_the_dataclass(path: KeyPath, value: object) -> None:
    assert CONFIG_CONTRACT.at(path)["default"] == value


def test_defaults_with_units_are_those_of_the_dataclass() -> None:
    assert parse_memory(CONFIG_CONTRACT.at(("train", "resources", "mem"))["default"]) == types.DEFAULT_MEM
    assert parse_duration(CONFIG_CONTRACT.at(("train", "stop_grace"))["default"]) == types.DEFAULT_POLICY.stop_grace
    assert parse_duration(CONFIG_CONTRACT.at(("train", "save", "every"))["default"]) == types.DEFAULT_EVERY
    assert {types.RetryOn(kind) for kind in CONFIG_CONTRACT.at(("train", "retry", "on"))["default"]} == types.Retry().on


@pytest.mark.parametrize(("form", "reader"), [("mem", parse_memory), ("duration", parse_duration)])
@pytest.mark.parametrize(
    "text",
    [
        "1",
        ".5",
        "1.",
        "1.5",
        "1G",
        "1 GiB",
        "1Gi",
        "1Gb",
        "1gb",
        "1gib",
        "1GIB",
        "1Gib",
        "1GB",
        "1x",
        "-1",
        "",
        "1s",
        "1 m",
        "1h30m",
        "1hm",
        "s",
    ],
)
def test_patterns_accept_what_the_readers_accept(form: str, reader: Any, text: str) -> None:
    """An editor knows only the pattern, so it has to accept exactly what the reader accepts."""
    matches = re.search(CONFIG_CONTRACT.schema["$defs"][form]["pattern"], text) is not None
    try:
        reader(text)
    except BadText:
        assert not matches
    else:
        assert matches


def test_the_example_file_is_valid_and_shows_every_key() -> None:
    text = (ROOT / "riseml.yml.example").read_text(encoding="utf-8")
    assert check_config(text).problems == ()
    commented = set(re.findall(r"(?m)^[ #-]*([a-z_]+):[^#\n]*#", text))
    assert {str(path[-1]) for path in KEYS} - commented == set()
