"""`tag`, `note`, `star`, `rename`, `archive`: what a user says about experiments, and the mistakes in it."""

from __future__ import annotations

import io
import json
import sys
from typing import Any

import pytest

from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer, make_experiment


@pytest.fixture(autouse=True)
def two_experiments(fake_server: FakeServer) -> None:
    fake_server.experiments |= {"4": make_experiment(), "7": make_experiment("7", name="warm up")}


def type_in(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    """Give the command this standard input."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


@pytest.mark.parametrize(
    ("words", "request_body"),
    [
        ("tag 4 baseline gro\u0308\u00dfe", {"add_tags": ["baseline", "gr\u00f6\u00dfe"]}),
        ("tag 4 baseline --remove", {"remove_tags": ["baseline"]}),
        ("star 4", {"starred": True}),
        ("star 4 --remove", {"starred": False}),
        ("archive 4", {"archived": True}),
        ("archive 4 --remove", {"archived": False}),
        ("rename 4 baseline", {"name": "baseline"}),
        ("rename 4 --remove", {"name": ""}),
        ("note 4 diverges", {"note": "diverges"}),
        ("note 4 5", {"note": "5"}),
        ("note 4 --remove", {"note": ""}),
    ],
)
def test_a_command_says_one_thing(
    riseml: Riseml, fake_server: FakeServer, words: str, request_body: dict[str, Any]
) -> None:
    assert riseml(*words.split()).code == 0
    assert fake_server.bodies == [request_body]
    assert fake_server.asked[-1] == "POST /experiments/4/annotation"


def test_several_ids_and_names_are_changed_together(riseml: Riseml, fake_server: FakeServer) -> None:
    tagged = riseml("tag", "warm up", "4", "4", "lr")
    assert (tagged.code, tagged.out) == (0, "7: name warm up; tag lr\n4: tag lr\n")
    assert riseml("note", "4", "7", "*why*\nbecause", "--json").code == 0
    starred = json.loads(riseml("star", "4", "7", "--json").out)["experiments"]
    assert [(one["id"], one["note"], one["starred"]) for one in starred] == [
        ("4", "*why*\nbecause", True),
        ("7", "*why*\nbecause", True),
    ]
    changes = len(fake_server.bodies)
    assert riseml("star", "4", "99").code == 3
    assert riseml("archive", "4", "nobody").code == 2
    assert len(fake_server.bodies) == changes, "with one wrong ID nothing is changed"
    assert riseml("archive", "4").out == "4: tag lr; starred; archived; a note of 2 lines\n"


def test_a_note_comes_from_standard_input_as_it_is(
    riseml: Riseml, fake_server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "# lr\r\n\n  warm \u202e\x1b[2J\n"
    for words in ("note", "4"), ("note", "4", "7", "-"):
        type_in(monkeypatch, text.encode())
        assert riseml(*words).code == 0
        assert fake_server.bodies[-1] == {"note": text}
    shown = riseml("show", "4").out
    assert "Note: # lr\n\n        warm \\u202e\n" in shown.replace("      \n", "\n")
    assert "\x1b" not in shown


def test_a_note_is_written_in_an_editor(
    riseml: Riseml, fake_server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_server.experiments["4"]["note"] = "before"
    editor = "sed -i -e 's/^before$/after/'"
    monkeypatch.setenv("VISUAL", editor)
    assert riseml("note", "4", asks=True).code == 0
    assert fake_server.bodies == [{"note": "after\n"}]
    monkeypatch.setenv("VISUAL", "true")
    assert riseml("note", "4", asks=True).err == "The note is as it was.\n"
    assert len(fake_server.bodies) == 1


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["tag", "4"], "no tag is given"),
        (["tag", "4", "a/b"], "the tag 'a/b' has the character '/'"),
        (["tag", "4", "baseline", "7"], "the tag '7' looks like the ID of an experiment"),
        (["tag", "4", "x" * 65], "the tag 'xxxx"),
        (["rename", "4"], "no name is given"),
        (["rename", "4", "18.2"], "the name '18.2' looks like the ID of an experiment"),
        (["rename", "4", "x", "--remove"], "--remove takes no name"),
        (["rename", "4", "a\x1b[2J"], "the name 'a\\x1b[2J' has the character '\\x1b'"),
        (["note", "4", " "], "the note is empty"),
        (["note", "4", "x" * 20_001], "the note has 20,001 characters"),
        (["note", "4", "text", "--remove"], "--remove takes no text"),
        (["note", "4", "-"], "standard input is not UTF-8 text"),
        (["star"], "ID"),
        (["star", "4/7"], "'4/7' is not an experiment ID"),
        (["star", "a\nb"], "'a\\nb' is not an experiment ID"),
        (["archive"], "ID"),
        (["archive", "4", "/"], "'/' is not an experiment ID"),
        (["archive", "nobody"], "'nobody' is not an experiment ID, and no experiment has this name or tag"),
        (["status", "4", "--archived"], "--archived and --where are for the list of experiments"),
        (["status", "--where", "lr<0.1"], "--where 'lr<0.1': the list of experiments is chosen by tag:"),
        (["status", "--where", "tag:"], "--where 'tag:': no condition begins at 'tag:'"),
        (["status", "--where", "name:a and name:b"], "--where has several name: conditions"),
        (["status", "--where", "star or archived"], "`or` is not supported"),
    ],
)
def test_mistakes_are_refused_in_words(
    riseml: Riseml, fake_server: FakeServer, monkeypatch: pytest.MonkeyPatch, words: list[str], problem: str
) -> None:
    type_in(monkeypatch, b"\xff")
    refused = riseml(*words)
    assert refused.code in (2, 3)
    assert problem in refused.err
    assert len(refused.err.splitlines()) > 1, "what to do next"
    assert fake_server.bodies == []


def test_status_shows_what_is_said_and_chooses_by_it(riseml: Riseml, fake_server: FakeServer) -> None:
    assert "NAME" in riseml("status").out
    fake_server.experiments["7"]["name"] = ""
    plain = riseml("status").out
    assert not {"NAME", "TAGS", "MARKS"}.intersection(plain.split()), "columns without a value are left out"
    assert "archived" not in fake_server.asked[-1]
    riseml("tag", "4", "baseline")
    riseml("star", "4")
    table = riseml("status", "--where", "tag:baseline and star").out
    assert "archived" not in fake_server.asked[-1]
    assert "all=true" in fake_server.asked[-1]
    assert "tag=baseline" in fake_server.asked[-1]
    assert "starred=true" in fake_server.asked[-1]
    header, first, _ = table.splitlines()
    assert header.split()[:4] == ["ID", "TAGS", "MARKS", "PROJECT"]
    assert first.split()[:3] == ["4", "baseline", "starred"]
    riseml("status", "--where", 'archived and name:"warm up"')
    assert "archived=only" in fake_server.asked[-1]
    assert "name=warm+up" in fake_server.asked[-1]
    riseml("status", "--archived")
    assert "archived=shown" in fake_server.asked[-1]
    fields = riseml("show", "4").out
    assert "Tags: baseline\nMarks: starred\n" in fields


def test_a_message_is_the_note_of_the_run(riseml: Riseml, fake_server: FakeServer) -> None:
    assert riseml("train", "-d", "-m", "lr *warmup*\n").code == 0
    assert fake_server.bodies[0]["annotation"] == {"note": "lr *warmup*\n"}
    assert riseml("train", "-d").code == 0
    assert "annotation" not in fake_server.bodies[1]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["-m", ""], "-m is empty"),
        (["-m", "x" * 20_001], "the note has 20,001 characters"),
        (["-m", "\udcff"], "the note has bytes that are not UTF-8 text"),
        (["144", "--trials", "2", "-m", "more"], "further trials run what their set runs"),
    ],
)
def test_a_message_that_is_no_note_starts_nothing(
    riseml: Riseml, fake_server: FakeServer, words: list[str], problem: str
) -> None:
    refused = riseml("train", "-d", *words)
    assert refused.code == 2
    assert problem in refused.err
    assert fake_server.bodies == []


COMMANDS_WITH_AN_ID = """
status baseline
show baseline
logs baseline --no-follow
monitor baseline --once
kill baseline
explain baseline
results baseline
compare baseline 7
tfconfig baseline
env baseline
search baseline --pause
plot baseline loss
keep baseline
save baseline
rerun baseline -d
checkout baseline code
export baseline --sh exported
ls output://baseline/x
du output://baseline
exec baseline.worker.1 true
forward baseline.worker.1 8888
cp baseline.worker.1:/x .
tensorboard baseline
notebook baseline
train baseline --trials 2
star baseline
tag baseline x
note baseline x
archive baseline
rename baseline x
"""


@pytest.mark.parametrize("words", COMMANDS_WITH_AN_ID.strip().splitlines())
def test_a_tag_stands_for_an_id_wherever_one_is_meant(riseml: Riseml, fake_server: FakeServer, words: str) -> None:
    message = "'baseline' could be 4 (tag), 7 (tag)"
    fake_server.refuse("GET /names/find", "UsageError", message)
    refused = riseml(*words.split())
    assert (refused.code, message in refused.err) == (2, True)
    asked = [question for question in fake_server.asked if not question.startswith(("GET /server", "GET /kept"))]
    usual = ("GET /names/find?word=baseline", "GET /whoami")  # `status` asks whether a user may have the name
    assert all(question.startswith(usual) for question in asked), asked
