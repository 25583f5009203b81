"""The starter riseml.yml of `riseml init`."""

from __future__ import annotations

import ast
import re

import pytest

from riseml.base.errors import UsageError
from riseml.frameworks.registry import FRAMEWORKS as PLUGINS
from riseml.frameworks.registry import choose_framework
from riseml.spec.config.loader import check_config, load_config
from riseml.spec.config.templates import FRAMEWORKS, make_starter_config
from riseml.spec.schema.contract import CONFIG_CONTRACT


@pytest.mark.parametrize("framework", [None, *FRAMEWORKS])
@pytest.mark.parametrize("name", ["ai-toaster", "my project", "ärger", "null", "123", "..", "a" * 300, "-x-"])
def test_starter_files_are_valid(framework: str | None, name: str) -> None:
    text = make_starter_config(name, framework)
    assert check_config(text).problems == ()
    assert choose_framework(load_config(text).train).name == (framework or "plain")
    uncommented = re.sub(r"(?m)^( *)# (?=  |tensorboard|distributed|install)", r"\1", text)
    assert check_config(uncommented).problems == ()
    assert check_config(uncommented).spec != check_config(text).spec


def test_every_framework_has_a_starter_file() -> None:
    assert set(FRAMEWORKS) == {plugin.name for plugin in PLUGINS}
    assert set(FRAMEWORKS) >= set(CONFIG_CONTRACT.at(("train", "framework"))["enum"])


@pytest.mark.parametrize("framework", ["caffe", "", "TensorFlow"])
def test_an_unknown_framework_is_refused_with_the_names_of_all(framework: str) -> None:
    with pytest.raises(UsageError, match=rf"no starter riseml\.yml for the framework '{framework}'") as raised:
        make_starter_config("x", framework)
    assert raised.value.hint == "use one of: plain, tensorflow, pytorch, jax, horovod, roles"


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_every_starter_program_is_python_that_reports_a_metric(framework: str) -> None:
    train = load_config(make_starter_config("x", framework)).train
    scripts = [line for section in (train.roles or (train,)) for line in section.run]
    programs = [program for script in scripts for program in re.findall(r"<<'END'\n(.*?)\nEND\b", script, re.DOTALL)]
    assert len(programs) == len(scripts)
    for program in programs:
        ast.parse(program)
    assert "riseml.report(" in programs[0]
