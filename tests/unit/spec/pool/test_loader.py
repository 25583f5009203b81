"""A pool.yml is a pool, or all its problems at once."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riseml.spec.pool.loader import check_pool, load_pool
from riseml.spec.yaml.document import MAX_BYTES
from riseml.spec.yaml.problems import Severity, SpecError


def test_a_thousand_hosts_are_read() -> None:
    hosts = "".join(
        f"- {{name: h{number}, url: ssh://riseml@h{number}, gpus: [0, 1, 2, 3], labels: {{gpu: a100}}}}\n"
        for number in range(1000)
    )
    assert len(load_pool(f"hosts:\n{hosts}", "pool.yml").hosts) == 1000


PIECES = st.sampled_from(
    [
        "hosts",
        "name",
        "url",
        "tls",
        "storage",
        "output",
        ": ",
        ":",
        "\n",
        "  ",
        "- ",
        "[",
        "]",
        "{",
        "}",
        ", ",
        "ssh://a",
        "0",
    ]
)


@given(st.lists(PIECES | st.text(max_size=3), max_size=40).map("".join))
@settings(deadline=None, max_examples=300)
def test_any_text_is_a_pool_or_has_problems(text: str) -> None:
    try:
        assert load_pool(text, "pool.yml").hosts
    except SpecError as error:
        assert all(problem.file == "pool.yml" and problem.problem for problem in error.problems)


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
