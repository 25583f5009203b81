"""The values of another system's file: each is read as what it should be, and unread fields are named."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from riseml.capsules.foreign_fields import (
    ForeignFields,
    ForeignValueError,
    join_words,
    name_project,
    quote_pieces,
    read_cores,
    read_memory,
)

FIELDS: dict[str, Any] = {
    "kind": "TFJob",
    "count": "3",
    "none": "",
    "words": ["a", "b"],
    "spec": {"x": "1", "y": {"z": "2"}},
    "parts": [{"name": "p", "more": "q"}, {"name": "r"}],
}


def test_keys_that_nothing_has_read_are_named_in_their_order() -> None:
    fields = ForeignFields(FIELDS)
    assert [*fields.list_left()] == [*FIELDS]
    fields.text("kind")
    fields.take("count", "none")
    fields.section("spec").section("y")
    for part in fields.sections("parts"):
        part.text("name")
    assert [*fields.list_left()] == ["words", "spec.x", "spec.y.z", "parts[0].more"]
    fields.peek("words")
    assert "words" in [*fields.list_left()], "a look alone is no conversion"


def test_a_key_without_a_value_is_missing() -> None:
    fields = ForeignFields({"a": "", "b": "~", "c": "null", "d": None, "e": "0", "f": []})
    assert [name for name in fields.names() if name in fields] == ["e", "f"]
    assert (fields.whole("a", 7), fields.words("b"), fields.sections("c"), fields.section("d").names()) == (
        7,
        [],
        [],
        (),
    )
    assert fields.text("absent", "x") == "x"


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda fields: fields.text("words"), "spec.words is not a text"),
        (lambda fields: fields.words("kind"), "spec.kind is not a list of texts"),
        (lambda fields: fields.words("parts"), "spec.parts is not a list of texts"),
        (lambda fields: fields.sections("spec"), "spec.spec is not a list"),
        (lambda fields: fields.sections("words"), "spec.words[0] is not a mapping"),
        (lambda fields: fields.section("kind"), "spec.kind is not a mapping"),
        (lambda fields: fields.whole("kind", 0), "spec.kind is not a whole number"),
    ],
)
def test_a_value_of_another_kind_is_named_by_its_path(read: Any, message: str) -> None:
    with pytest.raises(ForeignValueError) as raised:
        read(ForeignFields(FIELDS, "spec"))
    assert raised.value.message == message


@pytest.mark.parametrize("text", ["-1", "1.0", "٣", "1e3", "9" * 19, "0x1"])
def test_a_whole_number_has_digits_alone(text: str) -> None:
    with pytest.raises(ForeignValueError):
        ForeignFields({"count": text}).whole("count", 0)
    assert ForeignFields(FIELDS).whole("count", 0) == 3


@pytest.mark.parametrize(("text", "memory"), [("1Gi", "1024MiB"), ("1G", "954MiB"), ("1", "1MiB"), ("0.5Ki", "1MiB")])
def test_memory_is_mib_as_riseml_yml_has_it(text: str, memory: str) -> None:
    assert read_memory(text, "x") == memory
    for wrong in ("", "1GB!", "-1Gi", "Gi"):
        with pytest.raises(ForeignValueError, match="x is not an amount of memory"):
            read_memory(wrong, "x")


@pytest.mark.parametrize(("text", "cores"), [("2", 2.0), ("500m", 0.5), (".5", 0.5), ("1.5", 1.5)])
def test_cores_may_be_thousandths(text: str, cores: float) -> None:
    assert read_cores(text, "x") == cores
    for wrong in ("", "-1", "1e3", "m", "1k", "9" * 19):
        with pytest.raises(ForeignValueError, match="x is not a number of cores"):
            read_cores(wrong, "x")


@pytest.mark.parametrize(
    ("name", "project"),
    [("mnist", "mnist"), ("my job.v2", "my-job-v2"), ("-a-", "a"), ("é/ß", "imported"), ("", "imported")],
)
def test_a_project_has_a_name_that_riseml_takes(name: str, project: str) -> None:
    assert name_project(name) == project


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["python", "train.py", "--name", "a b"], "python train.py --name 'a b'"),
        (["sh", "-c", "a; b"], "a; b"),
        (["/bin/bash", "-lc", "a && b"], "a && b"),
        (["sh", "-c", "a", "name"], "sh -c a name"),
        (["sh", "-x", "a b"], "sh -x 'a b'"),
    ],
)
def test_a_command_is_a_line_of_a_shell(words: list[str], line: str) -> None:
    assert join_words(words) == line


@pytest.mark.parametrize(
    ("pieces", "word"),
    [
        ([], ""),
        ([("a b", False)], "a b"),
        ([("$(id)", False)], "$(id)"),
        ([("--lr=", False), ("${LR}", True), ("; ", False), ("id", False)], "--lr=0.1 *; id"),
    ],
)
def test_a_shell_replaces_references_alone(pieces: list[tuple[str, bool]], word: str) -> None:
    script = f"printf %s {quote_pieces(pieces)}"
    done = subprocess.run(["/bin/sh", "-c", script], env={"LR": "0.1 *"}, capture_output=True, text=True, check=True)
    assert done.stdout == word
