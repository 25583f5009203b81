"""Sizes: one parser for riseml.yml, pool.yml and variables."""

from __future__ import annotations

from decimal import Decimal

import pytest

from riseml.base.sizes import BadSize, Size, parse_size


@pytest.mark.parametrize("unit", ["M", "MB", "Mi", "MiB", "MIB", "m", "mb", "mB", "mi", "mib", " M", " MB"])
def test_every_spelling_of_a_unit_is_a_power_of_1024(unit: str) -> None:
    assert parse_size(f"1.5{unit}").count_bytes() == 1.5 * 2**20


@pytest.mark.parametrize(("prefix", "power"), [("K", 1), ("M", 2), ("G", 3), ("T", 4)])
def test_prefixes_are_powers_of_1024(prefix: str, power: int) -> None:
    assert parse_size(f"2{prefix}iB").count_bytes() == 2 * 1024**power


def test_a_number_without_a_unit_has_no_prefix() -> None:
    size = parse_size("64")
    assert size == Size(Decimal(64), "")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("16Gb", "has the unit Gb, which means bits"),
        ("16 Mib", "has the unit Mib, which means bits"),
        ("-1G", "is negative"),
        *((text, "is not a size") for text in ("", "x", "1e3", "1,5G", "16 G iB", "1B", "1PB", "1GG", "9" * 50)),
    ],
)
def test_other_texts_are_refused_with_a_reason(text: str, problem: str) -> None:
    with pytest.raises(BadSize) as raised:
        parse_size(text)
    assert raised.value.problem == problem
    assert raised.value.hint.startswith("write ")
