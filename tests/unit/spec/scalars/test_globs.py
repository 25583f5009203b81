"""Patterns of paths: what is refused, and that its hint helps."""

from __future__ import annotations

import re

import pytest

from riseml.spec.scalars.globs import parse_glob, refuse_alternatives
from riseml.spec.scalars.texts import BadText


def test_the_hint_for_a_brace_of_a_name_is_a_pattern_that_is_taken() -> None:
    name = "{a,b}.pt"
    with pytest.raises(BadText) as refused:
        refuse_alternatives(name)
    brace = re.search("`([^`]+)` for a brace of a name", refused.value.hint)
    assert brace is not None
    pattern = re.sub("[{}]", lambda _: brace[1], name)
    assert pattern == "?a,b?.pt"
    refuse_alternatives(pattern)
    assert parse_glob(pattern).matches(name)
