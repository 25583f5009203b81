"""YAML whose values stay as they are written."""

from __future__ import annotations

import pytest

from riseml.base.text_yaml import is_nothing, load_texts, read_switch


def test_every_value_is_the_text_that_was_written() -> None:
    data = b"key: 007\nport: 0x10\nswitch: yes\nday: 2024-01-02\nlist: [1e3, ~]\nnone:\n"
    texts = {"key": "007", "port": "0x10", "switch": "yes", "day": "2024-01-02", "list": ["1e3", "~"], "none": ""}
    assert load_texts(data) == texts


def test_a_mapping_is_merged_into_another_one() -> None:
    assert load_texts(b"a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}")["b"] == {"x": "1", "y": "3"}


@pytest.mark.parametrize("data", [b"{", b"a: b: c", b"\xff", b"!!python/object:os.system {}", b"[" * 5_000])
def test_what_is_not_yaml_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="it is not YAML"):
        load_texts(data)


def test_a_key_without_a_value_has_nothing() -> None:
    texts = load_texts(b"a:\nb: ~\nc: null\nd: 0\ne: []\n")
    assert [key for key in texts if is_nothing(texts[key])] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("value", "meaning"),
    [
        ("true", True),
        ("Yes", True),
        ("ON", True),
        ("false", False),
        ("no", False),
        ("Off", False),
        ("1", None),
        ([], None),
    ],
)
def test_a_switch_has_the_words_of_yaml(value: object, *, meaning: bool | None) -> None:
    assert read_switch(value) is meaning
