"""Compare the versions of a server and this command."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from packaging.version import Version


class VersionOrder(Enum):
    """How one version relates to another."""

    OLDER = "older"
    SAME = "same"
    NEWER = "newer"


def compare_versions(foreign: str, own: str) -> VersionOrder:
    """Return how `theirs` relates to `ours` in the order of PEP 440, without local labels such as `+cu12`.

    A text that is not a version is older than every version.

    `packaging` is imported (about 10 ms) only when the two texts differ, which is rare.

    Example:
        >>> compare_versions("2.0.0rc1", "2.0.0")
        <VersionOrder.OLDER: 'older'>
    """
    if foreign == own:
        return VersionOrder.SAME
    left = _parse_version(foreign)
    right = _parse_version(own)
    if left is None or right is None:
        if left is right:
            return VersionOrder.SAME
        return VersionOrder.OLDER if left is None else VersionOrder.NEWER
    return VersionOrder.SAME if left == right else VersionOrder.OLDER if left < right else VersionOrder.NEWER


def _parse_version(text: str) -> Version | None:
    from packaging.version import InvalidVersion, Version

    try:
        return Version(Version(text).public)
    except InvalidVersion:
        return None
