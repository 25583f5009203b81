"""A riseml.yml is a spec, or all its problems at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.spec.config.loader import Overrides, check_config, load_config
from riseml.spec.config.types import (
    ChiefKey,
    Distributed,
    Parameter,
    Resources,
    TensorFlow,
)
from riseml.spec.yaml.problems import Severity, SpecError
from tests.unit.spec.examples import DISTRIBUTED, EXAMPLES

ROOT = Path(__file__).parents[4]


@pytest.mark.parametrize("text", EXAMPLES.values(), ids=EXAMPLES)
def test_every_documented_form_has_no_problem(text: str) -> None:
    """Memory without a unit, which RiseML's documentation writes, has a warning that says how riseml reads it."""
    assert [problem for problem in check_config(text).problems if "has no unit" not in problem.problem] == []


@pytest.mark.parametrize("file", sorted((ROOT / "examples").rglob("*.yml")), ids=lambda file: file.name)
def test_the_examples_have_no_problem(file: Path) -> None:
    assert check_config(file.read_bytes(), file.name).problems == ()


def test_the_distributed_seed_is_read() -> None:
    spec = load_config(DISTRIBUTED, overrides=Overrides((("num-layers", "4"), ("learning-rate", "0.01"))))
    assert spec.project == "ai-toaster"
    assert spec.train.run == (
        "python train_model.py --num-layers {{ num-layers }} --learning-rate {{ learning-rate }}"
        " --training-data /data/my-project",
    )
    everywhere = Resources(2.0, 16384, 4)
    cluster = Distributed(3, 2, ChiefKey.MASTER, everywhere, everywhere, Resources(2.0, 16384, 0))
    assert spec.train.tensorflow == TensorFlow("1.2.1-gpu", distributed=cluster)
    assert spec.train.parameters == (Parameter("num-layers", ("4",)), Parameter("learning-rate", ("0.01",)))


def test_a_utf8_file_with_a_byte_order_mark_is_read() -> None:
    assert load_config(b"\xef\xbb\xbfproject: x\ntrain: {image: a, run: b}\n").project == "x"


def test_load_config_raises_all_errors_at_once() -> None:
    with pytest.raises(SpecError) as raised:
        load_config(
            "project: x\ntrain:\n  image: a\n  run: t {{lr}}\n  gpus: 1\n  resources: {mem: 16 Gb}\n", name="my.yml"
        )
    assert raised.value.exit_code == 2
    assert raised.value.http_status == 422
    assert [problem.line for problem in raised.value.problems] == [4, 5, 6]
    assert raised.value.message.splitlines()[0] == "my.yml has 3 problems"


def test_a_file_with_only_a_warning_is_usable() -> None:
    checked = check_config("project: x\ntrain: {image: a, run: b, parameters: {lr: 1}}\n")
    assert [problem.severity for problem in checked.problems] == [Severity.WARNING]
    assert checked.spec is not None
