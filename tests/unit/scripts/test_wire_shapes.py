"""The shapes for the client and for the web page are those of `riseml.wire`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from scripts.wire_shapes import SHAPES, TYPES, write_shapes, write_types


@pytest.mark.parametrize(("path", "write"), [(SHAPES, write_shapes), (TYPES, write_types)], ids=["client", "page"])
def test_the_file_is_up_to_date(path: Path, write: Callable[[], str]) -> None:
    assert path.read_text() == write(), "write it again with `python -m scripts.wire_shapes`"
