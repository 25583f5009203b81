"""How tests are spread over the workers of pytest-xdist."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.side_by_side import PLACES, choose_group

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("place", PLACES)
def test_every_place_that_is_named_exists(place: str) -> None:
    assert (ROOT / place).exists()


@pytest.mark.parametrize(
    ("nodeid", "group"),
    [
        ("tests/real/pool/test_loss.py::test_a", "tests/real/pool/"),
        ("tests/real/pool/test_gangs.py::test_b[x::y]", "tests/real/pool/"),
        ("tests/real/frameworks/test_jax.py::test_c", "tests/real/frameworks/"),
        ("tests/unit/spec/test_load.py::test_a[x::y]", "tests/unit/spec/test_load.py"),
        ("tests/real/e2e/test_train.py::test_a", "tests/real/e2e/test_train.py"),
        ("tests/real/docker/test_sync.py::test_a[x::y]", "tests/real/docker/test_sync.py::test_a[x::y]"),
        ("tests/unit/control/test_laws.py::test_a[1]", "tests/unit/control/test_laws.py::test_a[1]"),
    ],
)
def test_what_shares_something_is_one_group(nodeid: str, group: str) -> None:
    assert choose_group(nodeid) == group
