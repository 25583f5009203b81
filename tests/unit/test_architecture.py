"""The pictures of docs/architecture.md, which `make pictures` draws from the imports of the code before a release."""

from __future__ import annotations

import functools
import re
from itertools import pairwise

import pytest

from scripts.architecture.imports import PackageImports, count_imports, derive_layers, read_layers
from scripts.architecture.layout import arrange_boxes
from scripts.architecture.pictures import DOCS, draw_pictures

NAMES = sorted(path.name for path in DOCS.glob("architecture-*.svg"))  # drawing takes seconds, and each worker collects


@functools.cache
def draw_once() -> dict[str, str]:
    """Return the pictures of `draw_pictures`."""
    return draw_pictures()


def test_every_picture_in_docs_is_drawn_by_the_script() -> None:
    assert set(NAMES) == set(draw_once())


def test_drawing_again_gives_the_same_bytes() -> None:
    assert draw_pictures() == draw_once()


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_fetches_nothing_and_has_a_dark_mode(name: str) -> None:
    text = draw_once()[name].replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?:|@import|url\(", text)
    assert "prefers-color-scheme: dark" in text


def test_the_floors_have_every_package_once() -> None:
    shown = [name for layer in read_layers("riseml") for name in layer]
    assert sorted(shown) == [name for name in count_imports("riseml").children if not name.startswith("_")]


def test_layers_that_are_derived_put_an_importer_above_what_it_imports() -> None:
    counts = {("top", "middle"): 1, ("middle", "low"): 2, ("top", "low"): 1}
    imports = PackageImports("some", ("low", "middle", "top"), counts)
    assert derive_layers(imports, frozenset(imports.children)) == [["top"], ["middle"], ["low"]]


def test_boxes_of_one_row_do_not_overlap_and_lines_pass_between_them() -> None:
    edges = [("a", "c"), ("a", "d"), ("b", "c"), ("a", "e"), ("b", "e")]
    layout = arrange_boxes([["a", "b"], ["c", "d"], ["e"]], edges, 100)
    for row in layout.rows:
        for left, right in pairwise(row):
            assert layout.centres[right] - layout.centres[left] >= 26
    assert layout.paths["a", "e"] == ("a", "a>e@1", "e")
    assert set(layout.rows[1]) == {"c", "d", "a>e@1", "b>e@1"}
