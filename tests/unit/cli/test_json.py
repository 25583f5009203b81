"""docs/json.md describes exactly the shapes that commands print."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from typing_extensions import is_typeddict

from riseml import wire
from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import HOSTS, FakeServer, make_experiment

PAGE = (Path(__file__).parents[3] / "docs" / "json.md").read_text()
NOT_PRINTED = {"Submission", "NotebookRequest", "TensorBoardRequest", "NewHost", "Failure", "FailureBody", "LinesEntry"}
NOT_PRINTED |= {
    "AnnotationChange",
    "CapsuleView",
    "FileListing",
    "FoundName",
    "MissingContents",
    "MissingPart",
    "MissingParts",
    "PinnedImage",
    "ProfileOptions",
    "RerunNeeds",
    "RunAnnotation",
    "SaveRequest",
    "SetChangeRequest",
    "StacksRequest",
    "StoreKeys",
    "TrialRequest",
}
NOT_PRINTED |= {
    "Curve",
    "CurveList",
    "HostUsage",
    "ImportanceTable",
    "ImportanceView",
    "MetricLastValues",
    "MetricNames",
}
NOT_PRINTED |= {
    "ParameterImportance",
    "PoolUsage",
    "QuotaChange",
    "QueuedView",
    "QueueView",
    "Stragglers",
    "StragglerView",
}
NOT_PRINTED |= {"QuotaChange", "RegistryLogin", "SecretValue"}
NOT_PRINTED |= {"Changes", "EventList", "EventView", "LineMatches", "LinePage", "NumberedLine", "WebRequest"}
NOT_PRINTED |= {"MemberRequest", "NewKeyRequest", "NewProjectRequest", "NewUserRequest"}
NOT_PRINTED |= {"ProjectChangeRequest", "UserChangeRequest", "UserLinkRequest"}
NOT_PRINTED |= {"TableColumn", "TableLine", "TableView"}
NOT_PRINTED |= {"SavedTableList", "SavedTableName", "SavedTableRequest", "SavedTableView"}
NOT_PRINTED |= {"ReportBlocks", "ReportName", "ReportRequest", "ReportText"}
SHAPES = {name: shape for name, shape in vars(wire).items() if is_typeddict(shape) and name not in NOT_PRINTED}
SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}


def _read_page() -> dict[str, dict[str, str]]:
    """Return the keys of each shape with their types, as the page describes them."""
    sections = re.split(r"^##+ (.*)$", PAGE, flags=re.MULTILINE)[1:]
    rows = re.compile(r"^\| `(\w+)` \| (.*?) \| .*\|$", re.MULTILINE)
    return {title: dict(rows.findall(text)) for title, text in zip(sections[::2], sections[1::2], strict=True)}


def _say(hint: Any) -> str:
    """Return a type as the page writes it."""
    if hint == wire.StateName:
        return "state"
    if get_origin(hint) is Literal:
        return " or ".join(", ".join(f"`{value}`" for value in get_args(hint)).rsplit(", ", 1))
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(_say(part) for part in get_args(hint))
    if get_origin(hint) is list:
        return f"list of {_say(get_args(hint)[0])}"
    if get_origin(hint) is dict:
        value = get_args(hint)[1]
        return "object" if value is Any else f"object of {_say(value)}"
    return SIMPLE.get(hint) or str(hint.__name__)


@pytest.mark.parametrize("name", SHAPES)
def test_the_page_describes_each_shape(name: str) -> None:
    hints = get_type_hints(SHAPES[name])
    assert _read_page().get(name) == {key: _say(hint) for key, hint in hints.items()}


def test_the_page_describes_no_other_shape() -> None:
    assert {title for title, rows in _read_page().items() if rows} == set(SHAPES)


def test_states_are_named_on_the_page() -> None:
    assert all(f"`{state}`" in PAGE for state in get_args(wire.StateName))


STREAMS = {"exec", "shell", "cat", "server run", "mcp"}
"""Commands whose output is that of a program in a job, a file, the log of the server, or a protocol."""


def test_every_command_has_the_option_and_is_on_the_page(riseml: Riseml, capsys: pytest.CaptureFixture[str]) -> None:
    def read_help(verb: str) -> str:
        riseml(*verb.split(), "-h")
        return capsys.readouterr().out

    found: list[str] = []
    left = [""]
    while left:
        verb = left.pop()
        text = read_help(verb)
        commands = text.partition("Commands:")[2] if verb else text.partition("Options:")[0]
        below = re.findall(r"^  ([a-z-]+)  ", commands.partition("Options:")[0], re.MULTILINE)
        left += [f"{verb} {name}".strip() for name in below]
        if verb in STREAMS:
            assert f"`riseml {verb}`" in PAGE, verb
        elif verb and (not below or "--json" in text):
            found.append(verb)
            assert "--json" in text, verb
            assert re.search(rf"^\| `riseml {verb} .*--json` \|", PAGE, re.MULTILINE), verb
    assert {"kill", "pool", "pool drain", "server stop", "init"} <= set(found)


def test_commands_that_change_something_print_what_they_changed(
    riseml: Riseml, fake_server: FakeServer, tmp_path: Path
) -> None:
    fake_server.experiments |= {"4": make_experiment(), "5": make_experiment("5", state="FINISHED")}
    killed = riseml("kill", "4", "9", "5", "--json")
    assert json.loads(killed.out) == {
        "kills": [
            {"id": "4", "type": "experiment", "killed": True, "gave_up": False, "state": "RUNNING"},
            {"id": "5", "type": "experiment", "killed": False, "gave_up": False, "state": "FINISHED"},
        ]
    }
    assert killed.code == 3
    assert "there is no experiment 9" in killed.err
    host = HOSTS[0]
    for verb in ("drain", "resume"):
        fake_server.answers[f"POST /pool/hosts/local/{verb}"] = (200, host)
        assert json.loads(riseml("pool", verb, "local", "--json").out) == host
    assert json.loads(riseml("server", "start", "--json").out)["pid"] == 7
    home = {"RISEML_HOME": str(tmp_path / "none")}
    stopped = {"stopped": False, "pid": None, "active": 0, "searches": 0}
    assert json.loads(riseml("server", "stop", "--json", environ=home).out) == stopped
    written = {"file": "new.yml", "project": "project", "old": None}
    assert json.loads(riseml("init", "-f", "new.yml", "--json").out) == written
