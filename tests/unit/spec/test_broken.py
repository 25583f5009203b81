"""Broken files: the exact position and sentence of every problem (`broken.txt`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.spec.config.loader import check_config, load_config
from riseml.spec.yaml.document import MAX_BYTES
from riseml.spec.yaml.problems import Severity, SpecError

TABLE = Path(__file__).with_name("broken.txt")


def _cases() -> list[tuple[str, str, list[str]]]:
    found = []
    for block in TABLE.read_text(encoding="utf-8").split("\n===== ")[1:]:
        title, _, rest = block.partition("\n")
        text, _, expected = rest.partition("\n>>>>>\n")
        found.append((title, f"{text}\n" if text else "", expected.strip("\n").split("\n")))
    return found


CASES = _cases()


@pytest.mark.parametrize(("text", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_every_problem_has_its_position_and_sentence(text: str, expected: list[str]) -> None:
    told = [str(problem).removeprefix("riseml.yml:") for problem in check_config(text).problems]
    first = [lines[0] + (" ..." if len(lines) > 1 else "") for lines in (problem.split("\n") for problem in told)]
    assert first == expected


def test_the_table_is_large_and_its_names_are_unique() -> None:
    assert len(CASES) >= 120
    assert len({title for title, _, _ in CASES}) == len(CASES)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"project: x\ntrain:\n  run: \xff\n", "riseml.yml:3:8: byte 0xff is not UTF-8; save the file as UTF-8"),
        ("project: x\n".encode("utf-16"), "riseml.yml:1:1: the file is UTF-16, not UTF-8; save it as UTF-8"),
        ("project: \u00e9\x07\n", 'riseml.yml:1:11: a control character that YAML does not allow: "\\x07"; remove it'),
        ("#" * (MAX_BYTES + 1), "riseml.yml:1:1: the file is too large: 1.0 MiB; at most 1 MiB is allowed"),
    ],
    ids=["latin-1", "utf-16", "bell", "large"],
)
def test_a_file_that_cannot_be_decoded_is_one_problem(content: str | bytes, expected: str) -> None:
    assert [str(problem) for problem in check_config(content).problems] == [expected]


def test_a_utf8_file_with_a_byte_order_mark_is_read() -> None:
    assert load_config(b"\xef\xbb\xbfproject: x\ntrain: {image: a, run: b}\n").project == "x"


def test_load_config_raises_all_errors_at_once() -> None:
    with pytest.raises(SpecError) as raised:
        load_config(
            "project: x\ntrain:\n  image: a\n  run: t {{lr}}\n  gpus: 1\n  resources: {mem: 16 Gb}\n", name="my.yml"
        )
    assert raised.value.exit_code == 2
    assert raised.value.http_status == 422
    assert [problem.line for problem in raised.value.problems] == [4, 5, 6]
    assert raised.value.message.splitlines()[0] == "my.yml has 3 problems"


def test_a_file_with_only_a_warning_is_usable() -> None:
    checked = check_config("project: x\ntrain: {image: a, run: b, parameters: {lr: 1}}\n")
    assert [problem.severity for problem in checked.problems] == [Severity.WARNING]
    assert checked.spec is not None


def test_at_most_200_problems_are_listed_and_the_rest_is_counted() -> None:
    checked = check_config("".join(f"k{number}: 1\n" for number in range(4000)))
    assert len(checked.problems) == 201
    assert checked.problems[-1].problem == "3,802 more problems are not listed"
