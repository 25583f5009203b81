"""The texts of parameters as values, for readers of riseml-configuration.yml that want numbers."""

from __future__ import annotations

import pytest
import yaml

from riseml.spec.config.loader import check_config, load_config
from riseml.spec.scalars.quantities import parse_duration, parse_memory, read_value, write_value
from riseml.spec.scalars.texts import BadText
from riseml.spec.yaml.problems import Severity
from tests.unit.spec.examples import HEAD


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.0001", 0.0001),
        ("1e-7", 1e-7),
        ("-3", -3),
        ("64", 64),
        ("true", True),
        ("false", False),
        *((text, text) for text in ("yes", "adam", "", "007", "+5", "1_000", "0x10", "nan", ".inf", "1e999", "1" * 41)),
        *((text, text) for text in ("0.12345678901234567890", "2.10", "1e5", "1e-3", "01", "9007199254740993", "-0")),
        ("2.5e-6", 2.5e-6),
        ("9007199254740992", 9007199254740992),
    ],
)
def test_a_parameter_is_a_number_where_nothing_is_lost(text: str, value: object) -> None:
    found = read_value(text)
    assert (found, type(found)) == (value, type(value))
    assert write_value(found) == text
    assert yaml.safe_load(yaml.safe_dump({"lr": found})) == {"lr": value}


@pytest.mark.parametrize(
    ("text", "mib"),
    [
        *(("16GiB", 16384), ("512M", 512), ("16G", 16384), ("4096MB", 4096), ("16 GB", 16384), ("16g", 16384)),
        *(("16384", 16384), ("64", 64), ("63", 64512), ("4", 4096), (".5", 512), ("1.5GiB", 1536), ("2T", 2097152)),
        *(("9000k", 9), ("512Mi", 512), ("0.5", 512), ("500MB", 500), ("500MiB", 500), ("1GB", 1024), ("16gib", 16384)),
    ],
)
def test_memory_is_read_in_mib(text: str, mib: int) -> None:
    assert parse_memory(text) == mib
    assert load_config(f"{HEAD}  run: b\n  resources: {{mem: {text}}}\n").train.resources.mem == mib


MEMORY_KEYS = pytest.mark.parametrize("key", ["resources: {mem: %s}", "limits: {mem: %s}", "shm_size: %s"])


@MEMORY_KEYS
@pytest.mark.parametrize(
    ("text", "unit", "hint"),
    [
        ("4", "GiB", "write 4GiB, or 4MiB"),
        ("63", "GiB", "write 63GiB, or 63MiB"),
        (".5", "GiB", "write .5GiB, or .5MiB"),
        ("64", "MiB", "write 64MiB"),
        ("16384", "MiB", "write 16384MiB"),
    ],
)
def test_a_number_without_a_unit_has_a_warning_with_the_unit(key: str, text: str, unit: str, hint: str) -> None:
    checked = check_config(f"{HEAD}  run: b\n  {key % text}\n")
    (warning,) = checked.problems
    assert checked.spec is not None
    assert warning.severity is Severity.WARNING
    assert warning.problem == f"{text} has no unit and is read as {text} {unit}"
    assert warning.hint == hint


def test_a_missing_unit_is_said_once_for_each_unit() -> None:
    text = f"{HEAD}  run: b\n  resources: {{mem: 4096}}\n  limits: {{mem: 8192}}\n  shm_size: 2\n"
    places = [(problem.path, problem.hint) for problem in check_config(text).problems]
    assert places == [("train.resources.mem", "write 4096MiB"), ("train.shm_size", "write 2GiB, or 2MiB")]


@MEMORY_KEYS
@pytest.mark.parametrize("text", ["4GiB", "63M"])
def test_an_amount_of_memory_with_a_unit_has_no_warning(key: str, text: str) -> None:
    assert check_config(f"{HEAD}  run: b\n  {key % text}\n").problems == ()


@pytest.mark.parametrize(
    "text", ["", "x", "-1", "0", "16Gb", "16 Gb", "16Mib", "1e3", "1,5G", "16 G iB", "\u0661G", "9" * 50]
)
def test_other_texts_are_not_memory(text: str) -> None:
    with pytest.raises(BadText):
        parse_memory(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [*(("90", 90), ("30s", 30), ("10m", 600), ("2h", 7200), ("1d", 86400), ("1h30m", 5400), ("1.5h", 5400), ("0", 0))],
)
def test_durations_are_read_in_seconds(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds
    assert load_config(f"{HEAD}  run: b\n  stop_grace: {text}\n").train.policy.stop_grace == seconds


@pytest.mark.parametrize("text", ["", "x", "-1", "1w", "22:22", "1H", "s", "11y", "4000d", "1 m s"])
def test_what_is_not_a_duration(text: str) -> None:
    with pytest.raises(BadText):
        parse_duration(text)
