"""Names of files as people read and type them: any bytes, there and back."""

from __future__ import annotations

import pytest

from riseml.files.path_names import join_paths, to_path, to_text


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("model.pt", "model.pt"),
        ("100%", "100%25"),
        ("a b", "a b"),
        ("gr\udcfc", "gr%FC"),
        ("日本", "日本"),
    ],
)
def test_a_name_is_the_same_there_and_back(text: str, path: str) -> None:
    assert (to_path(text), to_text(path)) == (path, text)


def test_an_empty_part_adds_nothing() -> None:
    assert join_paths("", "a", "", "b/c") == "a/b/c"
    assert join_paths("", "") == ""
