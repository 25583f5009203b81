"""The text of an API key: `riseml_`, 36 random characters, and a checksum of six characters.

Scanners of public code find such a key by its beginning, and know by its checksum that it is none by chance. The random
characters have 214 bits. The last eight characters, which lists show, give away two of them and the checksum: 170 bits
stay unknown.
"""

from __future__ import annotations

import re
import secrets
import string
import zlib

KEY_PREFIX = "riseml_"
SESSION_PREFIX = "riseml_session_"
"""Begins the secret of each session, so that a scanner of files recognises it."""

SHOWN_CHARACTERS = 8
"""How many of the last characters of a key lists show."""

_ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
_RANDOM = 36  # characters
_CHECKSUM = 6  # characters: 62**6 is more than 2**32
_KEY = rf"{KEY_PREFIX}([0-9A-Za-z]{{{_RANDOM}}})([0-9A-Za-z]{{{_CHECKSUM}}})"


def make_key() -> str:
    """Return a new key."""
    random = "".join(secrets.choice(_ALPHABET) for _ in range(_RANDOM))
    return KEY_PREFIX + random + _make_checksum(random)


def is_key(text: str) -> bool:
    """Return True for a text that has the form of a key, and its checksum."""
    match = re.fullmatch(_KEY, text, re.ASCII)
    return match is not None and _make_checksum(match[1]) == match[2]


def _make_checksum(random: str) -> str:
    """Return the CRC-32 of the random characters, to the base 62."""
    number = zlib.crc32(random.encode())
    digits = []
    for _ in range(_CHECKSUM):
        number, digit = divmod(number, len(_ALPHABET))
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))
