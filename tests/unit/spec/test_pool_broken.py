"""Broken pool files: the exact position and sentence of every problem (`broken_pools.txt`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.spec.pool.loader import check_pool, load_pool
from riseml.spec.yaml.document import MAX_BYTES
from riseml.spec.yaml.problems import Severity, SpecError

TABLE = Path(__file__).with_name("broken_pools.txt")


def _cases() -> list[tuple[str, str, list[str]]]:
    found = []
    for block in TABLE.read_text(encoding="utf-8").split("\n===== ")[1:]:
        title, _, rest = block.partition("\n")
        text, _, expected = rest.partition("\n>>>>>\n")
        found.append((title, f"{text}\n" if text else "", expected.strip("\n").split("\n")))
    return found


CASES = _cases()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the table names."""
    found = tmp_path_factory.mktemp("pool")
    for name, mode, text in (
        ("ca.pem", 0o644, ""),
        ("cert.pem", 0o644, ""),
        ("key.pem", 0o600, "-----BEGIN PRIVATE KEY-----\n"),
        ("open.pem", 0o644, "-----BEGIN PRIVATE KEY-----\n"),
        ("locked.pem", 0o600, "-----BEGIN ENCRYPTED PRIVATE KEY-----\n"),
    ):
        (found / name).write_text(text)
        (found / name).chmod(mode)
    return found


@pytest.mark.parametrize(("text", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_every_problem_has_its_position_and_sentence(text: str, expected: list[str], folder: Path) -> None:
    path = folder / "pool.yml"
    told = [str(problem).removeprefix(f"{path}:") for problem in check_pool(text, path).problems]
    assert [line.replace(str(folder), "DIR") for line in told] == expected


def test_the_table_is_large_and_its_names_are_unique() -> None:
    assert len(CASES) >= 80
    assert len({title for title, _, _ in CASES}) == len(CASES)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"hosts: \xff\n", "pool.yml:1:8: byte 0xff is not UTF-8; save the file as UTF-8"),
        ("hosts: x\n".encode("utf-16"), "pool.yml:1:1: the file is UTF-16, not UTF-8; save it as UTF-8"),
        ("#" * (MAX_BYTES + 1), "pool.yml:1:1: the file is too large: 1.0 MiB; at most 1 MiB is allowed"),
    ],
    ids=["latin-1", "utf-16", "large"],
)
def test_a_file_that_cannot_be_decoded_is_one_problem(content: str | bytes, expected: str) -> None:
    assert [str(problem) for problem in check_pool(content, "pool.yml").problems] == [expected]


def test_load_pool_raises_all_errors_at_once() -> None:
    with pytest.raises(SpecError) as raised:
        load_pool("hosts:\n- {name: A, url: b}\n- {name: c, url: 'tcp://c:2375'}\n", "my/pool.yml")
    assert raised.value.exit_code == 2
    assert [(problem.line, problem.path) for problem in raised.value.problems] == [
        (2, "hosts[0].name"),
        (2, "hosts[0].url"),
        (3, "hosts[1].url"),
    ]
    assert raised.value.message.splitlines()[0] == "my/pool.yml has 3 problems"


def test_a_file_with_only_a_warning_is_usable() -> None:
    checked = check_pool("hosts: [{name: a, url: 'tcp://a:1', insecure: yes}]\n", "pool.yml")
    assert [problem.severity for problem in checked.problems] == [Severity.WARNING]
    assert checked.spec is not None


def test_a_file_name_that_is_too_long_is_a_problem() -> None:
    checked = check_pool(f"hosts: [{{name: a, url: ssh://a, identity: /{'x' * 300}}}]\n", "pool.yml")
    assert [problem.path for problem in checked.problems] == ["hosts[0].identity"]
    assert "File name too long" in checked.problems[0].problem
