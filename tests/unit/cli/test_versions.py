"""Versions are compared in the order of PEP 440."""

from __future__ import annotations

import pytest

from riseml.cli.local_server import VersionOrder, compare_versions


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("1.9.0", "2.0.0"),
        ("2.0.0.dev0", "2.0.0"),
        ("2.0.0.dev0", "2.0.0.dev1"),
        ("2.0.0.dev9", "2.0.0a1"),
        ("2.0.0a1", "2.0.0b1"),
        ("2.0.0b2", "2.0.0rc1"),
        ("2.0.0rc1", "2.0.0rc2"),
        ("2.0.0rc1.dev1", "2.0.0rc1"),
        ("2.0.0rc9", "2.0.0"),
        ("2.0.0", "2.0.0.post1"),
        ("2.0.0", "2.0.0-1"),
        ("2.0.0-1", "2.0.0-2"),
        ("2.0.0.post1", "2.0.1.dev0"),
        ("2.0.0", "1!1.0"),
        ("2.9", "2.10"),
        ("unknown", "0.1"),
    ],
)
def test_versions_have_an_order(older: str, newer: str) -> None:
    assert compare_versions(older, newer) is VersionOrder.OLDER
    assert compare_versions(newer, older) is VersionOrder.NEWER


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2.0", "2.0.0"),
        ("v2.0.0", "2.0.0"),
        ("2.0.0", "2.0.0+local"),
        ("2.0.0-1", "2.0.0.post1"),
        ("2.0.0-rc.1", "2.0.0c1"),
        ("unknown", "nothing"),
    ],
)
def test_versions_may_be_the_same(one: str, other: str) -> None:
    assert compare_versions(one, other) is VersionOrder.SAME
    assert compare_versions(other, one) is VersionOrder.SAME
