"""The starter riseml.yml of `riseml init`."""

from __future__ import annotations

import re

import pytest

from riseml.base.errors import UsageError
from riseml.spec.config.loader import check_config, load_config
from riseml.spec.config.templates import make_starter_config
from riseml.spec.schema.contract import CONFIG_CONTRACT


@pytest.mark.parametrize("framework", [None, "tensorflow", "pytorch"])
@pytest.mark.parametrize("name", ["ai-toaster", "my project", "ärger", "null", "123", "..", "a" * 300, "-x-"])
def test_starter_files_are_valid(framework: str | None, name: str) -> None:
    text = make_starter_config(name, framework)
    assert check_config(text).problems == ()
    assert load_config(text).train.framework == framework
    uncommented = re.sub(r"(?m)^( *)# (?=  |tensorboard|distributed|install)", r"\1", text)
    assert check_config(uncommented).problems == ()
    assert check_config(uncommented).spec != check_config(text).spec


def test_every_framework_has_a_starter_file() -> None:
    for framework in CONFIG_CONTRACT.at(("train", "framework"))["enum"]:
        assert f"framework: {framework}" in make_starter_config("x", framework)
    with pytest.raises(UsageError, match=r"no starter riseml\.yml for the framework 'caffe'"):
        make_starter_config("x", "caffe")
