"""The riseml.yml of an earlier RiseML, rewritten for this version."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riseml.spec.config.earlier_files import convert_earlier_file
from riseml.spec.config.loader import check_config
from tests.unit.spec.examples import EXAMPLES

REPOSITORY = Path(__file__).parents[4]
BEFORE = {
    "deploy": """\
# the toaster
deploy:   # serves it
  image:
    name: riseml/base:latest   # the base
    install:
    - pip install x  # once
  # what runs
  run:
  - python serve.py
  input:
    image: image
  demo:
    description: none
  mem: 4096
  cpus: 2  # many
""",
    "service": """\
service: toaster
commands:
- python a.py   # first
- python b.py
# the end
""",
    "counts": """\
project: x
train:
  framework: tensorflow
  tensorflow:
    version: 1.5
    tensorboard: 'true'   # board
    distributed:
      worker_count: 3   # the master counts
      worker_cpus: 2
      ps_count: 1  # holds the weights
  volumes:
  - a:b
  run: python t.py
""",
    "braces": "deploy: {run: python t.py, image: a}",
    "counts in tensorflow": """\
project: x
train:
  framework: tensorflow
  tensorflow: {ps_count: 1, worker_count: 2}
  parallel: 3   # at once
  run: python t.py
""",
    "beside train": """\
project: x
train:
  image: a
  run: b
deploy:
  run: x
""",
}
AFTER = {
    "deploy": """\
# the toaster
project: folder
train:   # serves it
  image:
    name: riseml/base:latest   # the base
    install:
    - pip install x  # once
  # what runs
  run:
  - python serve.py
  # input:
  #   image: image
  # demo:
  #   description: none
  resources:
    mem: 4096
    cpus: 2  # many
""",
    "service": """\
project: toaster
train:
  image: python:3.11
  run:
  - python a.py   # first
  - python b.py
# the end
""",
    "counts": """\
project: x
train:
  framework: tensorflow
  tensorflow:
    version: 1.5
    tensorboard: true   # board
    distributed:
      worker:
        count: 3   # the master counts
        resources:
          cpus: 2
      ps: 1  # holds the weights
  # volumes:
  # - a:b
  run: python t.py
""",
    "braces": """\
project: folder
train:
  run: python t.py
  image: a
""",
    "counts in tensorflow": """\
project: x
train:
  framework: tensorflow
  tensorflow:
    distributed:
      ps: 1
      worker: 2
  # parallel: 3
  run: python t.py
""",
    "beside train": """\
project: x
train:
  image: a
  run: b
# deploy:
#   run: x
""",
}


@pytest.mark.parametrize("name", BEFORE)
def test_an_earlier_file_keeps_its_comments_and_its_order_and_becomes_valid(name: str) -> None:
    converted = convert_earlier_file(BEFORE[name], "folder")
    assert converted.text == AFTER[name]
    assert check_config(converted.text).spec is not None
    assert convert_earlier_file(converted.text, "folder").text == converted.text, "a second time changes nothing"


def test_each_key_that_becomes_a_comment_is_named_with_the_reason() -> None:
    assert convert_earlier_file(BEFORE["counts"], "folder").left_out == (
        "`volumes` is a comment now: jobs read the data folder at {{data_dir}}; `train.data` fetches data from a store",
    )
    converted = convert_earlier_file(BEFORE["counts in tensorflow"], "folder")
    assert converted.left_out == ("`parallel` is a comment now: riseml has no train.parallel",)
    assert converted.changes == (
        "maps in braces are written as blocks, without the comments of the file",
        "`ps_count` is `ps` now",
        "`worker_count` is `worker` now",
        "`ps`, `worker` are below `distributed` now",
    )


@pytest.mark.parametrize("text", [*EXAMPLES.values(), (REPOSITORY / "riseml.yml.example").read_text()])
def test_a_file_of_this_version_stays_as_it_is(text: str) -> None:
    assert convert_earlier_file(text, "folder").text == text


@pytest.mark.parametrize("text", ["", "[1, 2]", "deploy", "{", "deploy:\n  run: [", "- a\n- b\n"])
def test_what_is_no_riseml_yml_stays_as_it_is(text: str) -> None:
    assert convert_earlier_file(text, "folder").text == text


_KEYS = "deploy service train project name commands run image input demo volumes mem cpus ps_count tensorflow framework"
_VALUES = st.recursive(
    st.sampled_from(["x", "'true'", "1", "", "|\n  a\n"]),
    lambda inner: st.dictionaries(st.sampled_from(_KEYS.split()), inner, min_size=1, max_size=4),
    max_leaves=8,
)


def _write(value: object, depth: int = 0) -> str:
    if not isinstance(value, dict):
        return f" {value}  # kept\n" if value != "|\n  a\n" else f" |\n{'  ' * (depth + 1)}a\n"
    lines = "".join(f"{'  ' * depth}{key}:{_write(inner, depth + 1)}" for key, inner in value.items())
    return f"\n{lines}" if depth else lines


@given(_VALUES.filter(lambda value: isinstance(value, dict)))
def test_any_file_of_earlier_keys_keeps_its_comments(value: object) -> None:
    text = _write(value)
    converted = convert_earlier_file(text, "folder")
    assert converted.text.count("# kept") == text.count("# kept")
