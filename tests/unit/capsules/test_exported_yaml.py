"""YAML for other programs: a text stays a text for every reader."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from riseml.capsules.exported_yaml import write_yaml
from riseml.spec.scalars.texts import is_valid_text


@pytest.mark.parametrize(
    "text",
    ["1e5", "1E5", "08", "01", "0o7", "2.10", "1_000", "0x10", ".5", "5.", "-1e-3", "+5", "true", "null", "1:30"],
)
def test_what_some_reader_takes_for_another_value_is_in_quotes(text: str) -> None:
    assert write_yaml({"V": text}) == f"V: '{text}'\n"


@pytest.mark.parametrize("text", ["adam", "python:3.11", "1024m", "3.11-slim", "v1e5"])
def test_other_texts_have_none(text: str) -> None:
    assert write_yaml({"V": text}) == f"V: {text}\n"


@given(st.text(max_size=20).filter(is_valid_text))
def test_any_text_comes_back(text: str) -> None:
    assert yaml.safe_load(write_yaml({"V": text})) == {"V": text}
