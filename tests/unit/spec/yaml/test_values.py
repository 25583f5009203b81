"""A section as its dataclass: each plain key by the kind of its field, and what cannot be read at its position."""

from __future__ import annotations

import enum

from riseml.base.records import dataclass
from riseml.spec.yaml.document import parse_document
from riseml.spec.yaml.values import SourceFile, read_section, read_values

SCHEMA = {"properties": {"size": {"type": "string"}, "delay": {"type": "string"}, "share": {"type": "number"}}}


class Color(enum.Enum):
    RED = "red"


@dataclass(frozen=True, slots=True)
class BoxSection:
    size: int = 1  # MiB
    delay: float | None = None  # seconds
    share: float = 0.5
    color: Color | None = None
    name: str = ""
    pairs: tuple[str, ...] = ()


def read_file(text: str) -> SourceFile:
    root = parse_document(text, "riseml.yml").root
    assert root is not None
    return read_values(root, SCHEMA, lambda schema, part: schema.get("properties", {}).get(part, {}))


def test_a_key_is_read_as_the_kind_of_its_field() -> None:
    file = read_file("{size: 2GiB, delay: 1m30s, share: 2, color: red, name: 1.10, pairs: [a]}\n")
    read = read_section(file, (), BoxSection)
    assert read == BoxSection(2048, 90.0, 2.0, Color.RED, "1.10")
    assert isinstance(read.share, float)
    assert file.problems == []


def test_missing_and_unusable_keys_have_the_values_of_the_base_or_of_the_class() -> None:
    file = read_file("{size: null, color: red, name: x}\n")
    file.bad.add(("color",))
    assert read_section(file, (), BoxSection) == BoxSection(name="x")
    assert read_section(file, (), BoxSection, BoxSection(7, pairs=("a",))) == BoxSection(7, name="x", pairs=("a",))


def test_a_field_of_the_caller_is_not_read() -> None:
    file = read_file("{size: nonsense, pairs: [a]}\n")
    assert read_section(file, (), BoxSection, size=3, pairs=("b",)) == BoxSection(3, pairs=("b",))
    assert file.problems == []


def test_an_amount_that_cannot_be_read_is_a_problem_at_its_position() -> None:
    file = read_file("size: 3\ndelay:   soon\n")
    assert read_section(file, (), BoxSection) == BoxSection(3072)
    assert [str(problem) for problem in file.problems] == [
        "riseml.yml:1:1 size: warning: 3 has no unit and is read as 3 GiB; write 3GiB, or 3MiB",
        'riseml.yml:2:10 delay: "soon" is not a duration; write 90, 30s, 10m, 2h or 1d',
    ]


def test_the_items_of_a_list_or_a_map_come_by_their_paths_without_unusable_ones() -> None:
    file = read_file("{list: [a, null, b, c], map: {x: 1, y: null}, text: a}\n")
    file.bad.add(("list", 3))
    assert file.items_at(("list",)) == {("list", 0): "a", ("list", 2): "b"}
    assert file.items_at(("map",)) == {("map", "x"): "1"}
    assert file.items_at(("text",)) == {("text",): "a"}
    assert file.items_at(("missing",)) == {}
