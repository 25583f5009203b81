"""The errors in which a command learns that a server refuses, whatever the server sends."""

from __future__ import annotations

from typing import Any

import pytest

from riseml import wire
from riseml.base import errors
from riseml.client.refusals import make_error
from riseml.client.server_client import Client
from riseml.spec.yaml.problems import SpecError
from tests.unit.cli.fake_server import FakeServer

BODY: dict[str, Any] = {"kind": "QuotaSpent", "message": "m", "hint": None, "exit_code": 4}
PROBLEM = {"file": "f", "line": 1, "column": 2, "path": "a.b", "problem": "p", "hint": "h", "severity": "warning"}


@pytest.mark.parametrize("code", ["7", 0, -1, 256, 1 << 40, None, [], 4.0])
def test_an_exit_code_that_no_refusal_has_is_the_general_one(code: object) -> None:
    error = make_error(BODY | {"exit_code": code})
    assert (type(error), error.exit_code) == (errors.RisemlError, 1)


@pytest.mark.parametrize(
    "failure",
    [
        "no",
        [],
        None,
        {},
        BODY | {"message": {"a": 1}},
        BODY | {"message": None},
        BODY | {"hint": ["h"]},
        BODY | {"kind": {}},
        BODY | {"problems": "all"},
        BODY | {"problems": ["one"]},
        BODY | {"problems": [PROBLEM | {"line": "1"}]},
        BODY | {"problems": [PROBLEM | {"problem": {}}]},
        BODY | {"problems": [PROBLEM | {"severity": []}]},
    ],
    ids=str,
)
def test_a_refusal_with_fields_of_other_types_is_not_an_answer_of_riseml(
    client: Client, fake_server: FakeServer, failure: object
) -> None:
    fake_server.answers["GET /server"] = (400, {"error": failure})
    with pytest.raises(errors.Unreachable, match="not as a riseml server does"):
        client.get_server()


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [(name, getattr(errors, name)) for name in ("UsageError", "NotFound", "Refused", "Conflict", "EngineError")],
)
def test_a_refusal_raises_the_error_of_the_server(
    client: Client, fake_server: FakeServer, kind: str, wanted: type[errors.RisemlError]
) -> None:
    fake_server.refuse("GET /experiments/9", kind, "it is so", status=wanted.http_status)
    with pytest.raises(wanted, match="it is so") as raised:
        client.get_experiment("9")
    assert type(raised.value) is wanted
    assert raised.value.hint == "do this"


def test_an_unknown_kind_keeps_its_exit_code() -> None:
    error = make_error({"kind": "QuotaSpent", "message": "m", "hint": None, "exit_code": 4})
    assert (type(error), error.exit_code) == (errors.RisemlError, 4)


def test_a_kind_names_only_errors() -> None:
    for kind in ("annotations", "__name__", "object"):
        error = make_error({"kind": kind, "message": "m", "hint": None, "exit_code": 1})
        assert type(error) is errors.RisemlError


def test_problems_come_back_as_they_were() -> None:
    problem: wire.ProblemShape
    problem = {"file": "f", "line": 1, "column": 2, "path": "a.b", "problem": "p", "hint": "h", "severity": "warning"}
    error = make_error({"kind": "SpecError", "message": "m", "hint": None, "exit_code": 2, "problems": [problem]})
    assert isinstance(error, SpecError)
    assert error.problems[0].severity.value == "warning"
