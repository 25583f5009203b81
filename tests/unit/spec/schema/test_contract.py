"""The schemas of riseml.yml and pool.yml as the loaders use them."""

from __future__ import annotations

import pytest

from riseml.spec.schema.contract import ANY_NAME, CONFIG_CONTRACT, PARAMETER_MARK, POOL_CONTRACT, FileContract
from riseml.spec.yaml.document import parse_document
from riseml.spec.yaml.problems import KeyPath


@pytest.mark.parametrize("contract", [CONFIG_CONTRACT, POOL_CONTRACT], ids=lambda contract: contract.name)
def test_every_path_of_the_walk_leads_to_its_schema(contract: FileContract) -> None:
    paths = dict(contract.walk())
    assert len(paths) > 20
    for path, schema in paths.items():
        assert "$ref" not in schema
        assert contract.at(path) == schema


@pytest.mark.parametrize(
    ("path", "key", "value"),
    [
        (("train", "resources", "mem"), "default", "1GiB"),
        (("train", "run", 0), "type", "string"),
        (("train", "roles", "any-name", "count"), "minimum", 1),
        (("train", "no-such-key"), "type", None),
    ],
)
def test_a_path_leads_to_a_part_of_the_schema(path: KeyPath, key: str, value: object) -> None:
    assert CONFIG_CONTRACT.at(path).get(key) == value


def test_names_of_the_user_have_one_place_in_the_walk() -> None:
    paths = [path for path, _ in CONFIG_CONTRACT.walk()]
    assert ("train", "roles", ANY_NAME, "count") in paths


@pytest.mark.parametrize(
    ("key", "home"),
    [("project", ()), ("mem", ("train", "resources")), ("ps", ("train", "tensorflow", "distributed"))],
)
def test_a_key_has_the_topmost_section_that_knows_it(key: str, home: KeyPath) -> None:
    assert CONFIG_CONTRACT.places[key][0] == home


def test_a_number_that_may_be_a_parameter_is_marked_and_has_no_pattern() -> None:
    schema = CONFIG_CONTRACT.at(("train", "resources", "gpus"))
    assert schema[PARAMETER_MARK]
    assert "pattern" not in schema


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("project: x\ntrain: {image: a, run: b}\n", []),
        ('project: "x\\n"\ntrain: {image: a, run: b}\n', ["project"]),
        (
            "project: x\ntrain: {image: a, run: b, cpu: 1, resources: {cpus: -1}}\n",
            ["train.cpu", "train.resources.cpus"],
        ),
    ],
)
def test_each_violation_is_a_problem_at_its_path(text: str, problems: list[str]) -> None:
    root = parse_document(text, "riseml.yml").root
    assert root is not None
    assert [problem.path for problem in CONFIG_CONTRACT.check_values(root).problems] == problems
