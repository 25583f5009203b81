"""The text of an API key: random enough, and told from other texts by its checksum."""

from __future__ import annotations

import math
import re
import string

import pytest

from riseml.base.api_keys import KEY_PREFIX, SHOWN_CHARACTERS, is_key, make_key


def test_keys_differ_and_have_more_than_160_bits_beside_the_shown_characters() -> None:
    keys = {make_key() for _ in range(200)}
    assert len(keys) == 200
    for key in keys:
        match = re.fullmatch(r"riseml_([0-9A-Za-z]{36})[0-9A-Za-z]{6}", key)
        assert match is not None, key
        hidden = len(match[1]) - (SHOWN_CHARACTERS - 6)
        assert hidden * math.log2(62) >= 160
        assert is_key(key)
    everywhere = [{key[at] for key in keys} for at in range(len(KEY_PREFIX), len(KEY_PREFIX) + 36)]
    assert all(len(characters) > 40 for characters in everywhere), "every place is random"


@pytest.mark.parametrize("place", [*range(len(KEY_PREFIX), len(KEY_PREFIX) + 42, 5)])
def test_a_key_with_another_character_is_not_a_key(place: int) -> None:
    key = make_key()
    for character in string.ascii_letters + string.digits:
        assert is_key(key[:place] + character + key[place + 1 :]) is (character == key[place])


@pytest.mark.parametrize("text", ["", "riseml_", "riseml_" + "a" * 42, "RISEML_{}", "{}\n", " {}", "{}0"])
def test_other_texts_are_not_keys(text: str) -> None:
    assert not is_key(text.format(make_key().removeprefix(KEY_PREFIX) if text.startswith("RISEML") else make_key()))
