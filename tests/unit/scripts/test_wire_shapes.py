"""The shapes for the client and for the web page are those of `riseml.wire`."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from scripts.wire_shapes import SHAPES, TYPES, write_shapes, write_types


@pytest.mark.parametrize(("path", "write"), [(SHAPES, write_shapes), (TYPES, write_types)], ids=["client", "page"])
def test_the_file_is_up_to_date(path: Path, write: Callable[[], str]) -> None:
    assert path.read_text() == write(), "write it again with `python -m scripts.wire_shapes`"


def test_the_page_names_the_type_of_each_answer() -> None:
    """`any` in the page's types would hide a field that a shape does not have."""
    modules = sorted((TYPES.parent / "static").glob("*.js"))
    assert len(modules) > 30
    loose = [path.name for path in modules if re.search(r"\{[^{}\n]*\bany\b[^{}\n]*\}\}? ", path.read_text())]
    assert loose == []


def test_a_key_that_may_be_absent_and_one_of_several_texts_are_written_for_both() -> None:
    assert (
        '"CapsuleEnvironment": {"image": "str", "digest": "?str", "install": "[str", "shell?": "str"' in write_shapes()
    )
    types = write_types()
    assert 'install: Array<string>; shell?: "auto" | "bash" | "sh";' in types
    assert "Request extends `GET /experiments/${string}/curves` ? CurveList :" in types
