"""Counts and resources that are parameters: what each combination means, and which values are refused."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from riseml.spec.config.loader import Overrides, check_config, load_config
from riseml.spec.config.types import Spec
from riseml.spec.schema.contract import CONFIG_CONTRACT, PARAMETER_MARK

ROOT = Path(__file__).parents[4]
FILE = """\
project: x
train:
  framework: tensorflow
  run: python train.py --lr {{lr}}
  resources: {cpus: "{{cpus}}", mem: "{{mem}}GiB", gpus: "{{gpus}}"}
  tensorflow: {distributed: {worker: "{{ workers }}", ps: {count: "{{ps}}"}}}
  parameters: {lr: [0.1, 0.01], PARAMETERS}
"""
USUAL = {"cpus": "1", "mem": "2", "gpus": "0", "workers": "[1, 3]", "ps": "1"}


def write(**values: str) -> str:
    """Return the file with these values beside the usual ones."""
    return FILE.replace("PARAMETERS", ", ".join(f"{name}: {value}" for name, value in (USUAL | values).items()))


def shapes(spec: Spec) -> list[tuple[int, int, float, int, int]]:
    """Return workers, ps, cpus, MiB and GPUs of every topology."""
    found = []
    for topology in spec.topologies:
        assert topology.train.tensorflow is not None
        cluster = topology.train.tensorflow.distributed
        assert cluster is not None
        need = cluster.worker_resources
        found.append((cluster.workers, cluster.ps, need.cpus, need.mem, need.gpus))
    return found


def told(text: str, *parameters: tuple[str, str]) -> list[str]:
    problems = check_config(text, overrides=Overrides(parameters)).problems
    return [str(problem).partition("train.")[2] for problem in problems]


def test_each_combination_has_its_own_jobs_and_resources() -> None:
    spec = load_config(write(gpus="{range: {min: 0, max: 1, step: 1}}"))
    assert shapes(spec) == [(1, 1, 1.0, 2048, 0), (3, 1, 1.0, 2048, 0), (1, 1, 1.0, 2048, 1), (3, 1, 1.0, 2048, 1)]
    assert dict(spec.topologies[2].values) == {"cpus": "1", "mem": "2", "gpus": "1", "workers": "1", "ps": "1"}
    assert spec.train == spec.topologies[0].train


def test_a_file_without_such_parameters_has_no_topologies() -> None:
    assert load_config("project: x\ntrain: {image: a, run: 'b {{c}}', parameters: {c: [1, 2]}}\n").topologies == ()


def test_the_command_line_replaces_them_too() -> None:
    changes = Overrides((("workers", "2"),), (("train.resources.cpus", '"{{ps}}"'), ("train.limits.cpus", "9")))
    spec = load_config(write(), overrides=changes)
    assert [shape[:3] for shape in shapes(spec)] == [(2, 1, 1.0)]
    assert "tensorflow.distributed.worker: must be at least 1, not 0 (with workers=0)" in told(
        write(), ("workers", "0")
    )


@pytest.mark.parametrize(
    ("values", "problems"),
    [
        ({"workers": "0"}, ["tensorflow.distributed.worker: must be at least 1, not 0 (with workers=0)"]),
        (
            {"workers": "[1, -1, 1001]"},
            [
                "tensorflow.distributed.worker: must be at least 1, not -1 (with workers=-1)",
                "tensorflow.distributed.worker: must be at most 1,000, not 1001 (with workers=1001)",
            ],
        ),
        (
            {"ps": "two"},
            [
                'tensorflow.distributed.ps.count: must be a whole number, not "two" (with ps=two);'
                " for example `count: 2`"
            ],
        ),
        (
            {"workers": "'{{ps}}'"},
            [
                "tensorflow.distributed.worker: must be a whole number or a map of keys and values,"
                ' not "{{ps}}" (with workers={{ps}}); for example `worker: 3`'
            ],
        ),
        ({"cpus": "-0.5"}, ["resources.cpus: must be more than 0, not -0.5 (with cpus=-0.5)"]),
        (
            {"mem": "[1, 1x]"},
            ['resources.mem: "1xGiB" is not a size (with mem=1x); write a number with a unit, such as 512M or 16GiB'],
        ),
        ({"gpus": "1025"}, ["resources.gpus: must be at most 1,024, not 1025 (with gpus=1025)"]),
        ({"gpus": "1.5"}, ["resources.gpus: must be a whole number, not 1.5 (with gpus=1.5); for example `gpus: 1`"]),
    ],
    ids=str,
)
def test_a_bad_value_is_refused_for_its_points(values: dict[str, str], problems: list[str]) -> None:
    assert told(write(**values)) == problems
    assert check_config(write(**values)).spec is None


def test_a_rule_between_two_keys_names_the_values_that_break_it() -> None:
    text = write(cpus="[1, 2]") + "  limits: {cpus: 1}\n"
    assert told(text) == [
        "limits.cpus: the limit of 1 is below the 2 cores that the worker guarantees (with cpus=2);"
        " raise the limit, or lower the guarantee"
    ]


def test_an_undefined_parameter_is_reported_once_with_its_place() -> None:
    text = write().replace("{{ps}}", "{{pss}}").replace("{{cpus}}", "{{num_workers}}")
    problems = check_config(text).problems
    assert [(one.line, one.column, one.problem, one.hint) for one in problems if one.severity.value == "error"] == [
        (5, 22, 'there is no parameter "num_workers"', 'did you mean "workers"?'),
        (6, 68, 'there is no parameter "pss"', 'did you mean "ps"?'),
    ]


def test_too_many_combinations_are_one_problem() -> None:
    text = write(workers="{range: {min: 1, max: 40, step: 1}}", ps="{range: {min: 1, max: 40, step: 1}}")
    (problem,) = check_config(text).problems
    assert problem.problem == "the parameters make 3,200 experiments; at most 1,000 are allowed"


def test_a_search_whose_counts_and_resources_have_too_many_combinations_is_refused() -> None:
    """A trial gets its jobs from the list of these combinations, which has an end."""
    search = "  search: {method: random, metric: accuracy, goal: maximize, trials: 5}\n"
    values = {name: "{range: {min: 1, max: 40, step: 1}}" for name in ("cpus", "mem")}
    (problem,) = check_config(write(**values, workers="1") + search).problems
    assert str(problem) == (
        "riseml.yml:7:3 train.parameters: counts and resources have 1,600 combinations; at most 1,000 are allowed; "
        "use fewer values of the parameters in them"
    )


def test_an_editor_accepts_a_placeholder_where_a_parameter_may_be() -> None:
    """The schema in the repository accepts it; the check of riseml comes after parameters have filled it."""
    raw = json.loads((ROOT / "schemas" / "riseml.schema.json").read_text(encoding="utf-8"))
    editor = Draft202012Validator(raw)
    value = {
        "project": "x",
        "train": {
            "image": "a",
            "run": "b",
            "resources": {"cpus": "{{c}}", "mem": "{{ m }}GiB", "gpus": "{{g}}"},
            "roles": {"actor": {"count": "{{n}}"}},
        },
    }
    assert editor.is_valid(value)
    for wrong in ("1", "{{1}}", "x{{n}}", "{n}"):
        value["train"]["roles"] = {"actor": {"count": wrong}}  # type: ignore[index]  # a mapping, as written above
        assert not editor.is_valid(value), wrong
    written = json.dumps(raw).count(r"\\{\\{")
    marked = json.dumps(CONFIG_CONTRACT.schema)
    assert written == marked.count(PARAMETER_MARK) >= 15
    assert not re.search(r'"pattern": "[^"]*\{\\\\\{', marked)
