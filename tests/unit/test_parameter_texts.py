"""The text of a parameter, from riseml.yml to every place where it is read again: it is what its author wrote."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from riseml.analysis.column_names import quote_name
from riseml.analysis.rows import Columns, ResultRow
from riseml.base.control_characters import escape_controls
from riseml.cli.output.results_view import list_csv, list_results
from riseml.cli.output.style import Style
from riseml.cli.output.text import clean_text
from riseml.files.storage.outputs import describe_run
from riseml.model import Plan
from riseml.planning.grid import grid_points
from riseml.planning.image import Manifest
from riseml.planning.launch import list_parameter_variables
from riseml.planning.plan import make_plans
from riseml.planning.template import fill_placeholders
from riseml.spec.config.loader import load_config
from riseml.spec.config.overrides import Overrides
from riseml.spec.scalars.quantities import write_value
from riseml.spec.scalars.texts import is_valid_text
from riseml.spec.yaml.document import parse_document
from riseml.spec.yaml.writing import write_document
from riseml.store.codec import parse_json, to_text
from tests.unit.analysis.result_rows import choose
from tests.unit.analysis.test_csv_table import read_cell
from tests.unit.cli.result_rows import FOUND, make_metric, make_result
from tests.unit.control.simulation import make_experiment, make_plan

HARD = [
    "2.1",
    "2.10",
    "01",
    "1",
    "001",
    "9007199254740993",
    "9007199254740992",
    "1e5",
    "1E5",
    "100000",
    "1_000",
    "0x10",
]
HARD += ["0o7", "1:30", "yes", "No", "null", "~", "true", "True", ".nan", "nan", "NA", "-0", "+5", "5.", ".5", "1.0"]
HARD += ["2026-11-01", "=1+1", "-x", "'=1", "@a", "#", "a: b", "{{v}}", "a, b", "a\nb", "\x85", "\u2028", " a ", ""]

WRITTEN_PLAIN = re.compile(r"[A-Za-z0-9.+_~][A-Za-z0-9.+_~-]*|-[A-Za-z0-9.]+")
"""Texts that YAML takes without quotes, whatever it reads them as."""

NUMBERS = st.from_regex(re.compile(r"[-+]?[0-9]{1,20}(\.[0-9]{0,6})?([eE][-+]?[0-9]{1,2})?"), fullmatch=True)
ANY = st.text(max_size=20).filter(is_valid_text)
STYLES = st.sampled_from(["", "'", '"', "|", ">"])
SCALARS = st.lists(st.tuples(st.sampled_from(HARD) | NUMBERS | ANY, STYLES), min_size=1, max_size=6)


def write_config(scalars: Sequence[tuple[str, str]]) -> tuple[str, list[str]]:
    """Return a riseml.yml whose parameter `v` has these texts, each in its style: plain, in quotes, or as a block. Also
    return the texts that it has for a reader of YAML that makes nothing of them.
    """
    nodes = []
    resolver: Any = yaml.SafeLoader("")
    for text, style in scalars:
        plain = not style and WRITTEN_PLAIN.fullmatch(text) is not None
        tag = resolver.resolve(yaml.ScalarNode, text, (True, False)) if plain else "tag:yaml.org,2002:str"
        nodes.append(yaml.ScalarNode(tag, text, style=None if plain else style or '"'))
    values = yaml.serialize(yaml.SequenceNode("tag:yaml.org,2002:seq", nodes, flow_style=False), Dumper=yaml.SafeDumper)
    lines = "".join(f"      {line}\n" for line in values.splitlines())
    config = f"project: p\ntrain:\n  image: a\n  run: t {{{{v}}}}\n  parameters:\n    v:\n{lines}"
    return config, yaml.load(config, Loader=yaml.BaseLoader)["train"]["parameters"]["v"]


def read_values(config: str, overrides: Overrides = Overrides()) -> list[str]:
    (parameter,) = load_config(config, overrides=overrides).train.parameters
    return list(parameter.values)


@given(SCALARS)
@example([(text, "") for text in HARD])
@example([(text, '"') for text in HARD])
@settings(max_examples=60, deadline=None)
def test_a_text_reaches_its_job_and_its_results_as_it_is_written(scalars: list[tuple[str, str]]) -> None:
    config, texts = write_config(scalars)
    assert read_values(config) == texts
    root = parse_document(config, "riseml.yml").root
    assert root is not None
    assert read_values(write_document(root)) == texts, "the capsule and `rerun` have it so"
    assert read_values(config, Overrides(parameters=(("v", texts[0]),))) == texts[:1], "-p"

    spec = load_config(config)
    plans = make_plans(spec, grid_points(spec.train), Manifest())
    assert [parse_json(to_text(plan), Plan).parameters for plan in plans] == [(("v", text),) for text in texts]
    assert [list_parameter_variables(plan)["V"] for plan in plans] == texts
    lines = [fill_placeholders("t {{v}}", dict(plan.parameters)) for plan in plans]
    assert [shlex.split(line) for line in lines] == [["t", text] for text in texts]

    for text in texts:
        experiment = make_experiment(4, replace(make_plan("train"), parameters=(("v", text),)))
        record = yaml.safe_load(describe_run(experiment, config))
        assert write_value(record["params"]["v"]) == text, "riseml-configuration.yml"
        assert [write_value(value) for value in record["config"]["train"]["parameters"]["v"]] == texts


@given(st.lists(st.sampled_from(HARD) | NUMBERS | ANY, min_size=1, max_size=6, unique=True))
@example(HARD)
@settings(max_examples=60, deadline=None)
def test_results_show_and_find_a_text_as_it_is_written(texts: list[str]) -> None:
    results = [make_result(at, None, make_metric("loss", 0.5), parameters={"v": text}) for at, text in enumerate(texts)]
    answer = {**FOUND, "objective": None, "best": None, "parameters": ["v"], "same": {}, "experiments": results}
    received = json.loads(json.dumps(answer))
    assert [result["parameters"]["v"] for result in received["experiments"]] == texts

    _, *rows = csv.reader(io.StringIO("\n".join(list_csv(received, ["v", "id"])) + "\n", newline=""))
    assert [name for _, name in rows] == [f"144.{at}" for at in range(len(texts))]
    for (cell, _), text in zip(rows, texts, strict=True):
        if escape_controls(text) == text:  # else it has control characters, which are shown
            assert read_cell(cell) == text
    table = list_results(received, Style(), ["id", "v"])
    shown = [clean_text(text).replace("\t", " ") for text in texts]
    assert [line.partition("  ")[2].strip() for line in table[1 : len(texts) + 1]] == [text.strip() for text in shown]

    columns = Columns(frozenset({"v"}), frozenset())
    found = [ResultRow(str(at), "FINISHED", "COMPLETED", (at, 0), {"v": text}) for at, text in enumerate(texts)]
    for at, text in enumerate(texts):
        assert [row.name for row in choose(found, f"v={quote_name(text)}", columns)] == [str(at)]
        if re.fullmatch(r"[^\s<>=!'\",&()]+", text):
            assert [row.name for row in choose(found, f"v={text}", columns)] == [str(at)]
            assert str(at) not in [row.name for row in choose(found, f"v!={text}", columns)]


@pytest.mark.parametrize("text", ["2.10", "01", "9007199254740993", "1e5"])
def test_an_option_is_the_text_of_the_command_line(text: str) -> None:
    config, _ = write_config([("1", ""), ("2", "")])
    assert read_values(config, Overrides(parameters=(("v", text),))) == [text]
