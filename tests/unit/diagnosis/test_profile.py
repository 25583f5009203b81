"""Tests of riseml.diagnosis.profile and flame_graph: py-spy's samples as hot lines, a picture and a speedscope file."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from riseml.diagnosis.flame_graph import draw_flame_graph
from riseml.diagnosis.profile import (
    MOST_DEPTH,
    MOST_STACKS,
    HotLine,
    Profile,
    ProfileStack,
    find_hot_lines,
    make_speedscope,
    parse_profile,
)

TEXT = b"""
process 7:"python train.py";<module> (train.py:9);train (train.py:7);load (data.py:3) 60
process 7:"python train.py";<module> (train.py:9);train (train.py:8);step (net.py:5);step (net.py:5) 30
process 9:"python train.py";poll 10
py-spy> Wrote raw flamegraph data to '/dev/stdout'. Samples: 100 Errors: 2
py-spy> You can use the flamegraph.pl script
"""
SVG = "{http://www.w3.org/2000/svg}"


def test_the_hottest_lines_come_first_and_recursion_counts_once() -> None:
    profile = parse_profile(TEXT)
    assert (profile.samples, profile.errors, profile.count) == (100, 2, 100)
    assert find_hot_lines(profile, 4) == [
        HotLine("load (data.py:3)", 60, 60),
        HotLine("step (net.py:5)", 30, 30),
        HotLine("poll", 10, 10),
        HotLine("<module> (train.py:9)", 0, 90),
    ]


def test_a_flame_graph_has_a_box_for_each_call_as_wide_as_its_part() -> None:
    picture = ElementTree.fromstring(draw_flame_graph(parse_profile(TEXT), "4.worker.1 <&>"))
    boxes: dict[str, list[tuple[float, float]]] = {}
    for group in picture.iter(f"{SVG}g"):
        box, title = group.find(f"{SVG}rect"), group.find(f"{SVG}title")
        assert box is not None and title is not None and title.text is not None
        boxes.setdefault(title.text, []).append((float(box.attrib["x"]), float(box.attrib["width"])))
    assert boxes["load (data.py:3): 60.0 % (60 samples)"] == [(0.0, 719.5)]
    assert boxes["step (net.py:5): 30.0 % (30 samples)"] == [(720.0, 359.5)] * 2
    assert boxes["<module> (train.py:9): 90.0 % (90 samples)"] == [(0.0, 1079.5)]
    assert picture.findtext(f"{SVG}text") == "4.worker.1 <&>"
    assert {child.tag for child in picture.iter()} == {f"{SVG}{name}" for name in ("svg", "g", "rect", "text", "title")}


def test_a_speedscope_file_has_each_stack_with_its_seconds() -> None:
    file = make_speedscope(parse_profile(TEXT), "4.worker.1", 50)
    assert file["shared"] == {
        "frames": [
            {"name": 'process 7:"python train.py"'},
            {"name": "<module>", "file": "train.py", "line": 9},
            {"name": "train", "file": "train.py", "line": 7},
            {"name": "load", "file": "data.py", "line": 3},
            {"name": "train", "file": "train.py", "line": 8},
            {"name": "step", "file": "net.py", "line": 5},
            {"name": 'process 9:"python train.py"'},
            {"name": "poll"},
        ]
    }
    profiles = file["profiles"]
    assert isinstance(profiles, list)
    profile = profiles[0]
    assert profile["samples"] == [[0, 1, 2, 3], [0, 1, 4, 5, 5], [6, 7]]
    assert (profile["weights"], profile["endValue"]) == ([1.2, 0.6, 0.2], pytest.approx(2.0))


def test_names_of_a_hostile_job_are_bounded_and_harmless() -> None:
    deep = ";".join(f"f{depth}" for depth in range(5000))
    rows = [f"{deep} 1", 'a</title><script>\x1b[2J"&;b 2', "no number", " 3", "x 99999999999", "y -1"]
    rows += [f"stack{number} 1" for number in range(MOST_STACKS + 10)]
    profile = parse_profile("\n".join(rows).encode())
    assert len(profile.stacks) == MOST_STACKS
    assert max(len(stack.calls) for stack in profile.stacks) == MOST_DEPTH
    picture = draw_flame_graph(Profile(profile.stacks[:3], 3, 0), "\x1b[2J")
    assert "<script" not in picture
    assert re.search("[\x00-\x09\x0b-\x1f]", picture) is None
    ElementTree.fromstring(picture)


def test_a_job_that_only_waits_has_an_empty_picture() -> None:
    profile = parse_profile(b"\npy-spy> Wrote raw flamegraph data to '/dev/stdout'. Samples: 50 Errors: 0\n")
    assert profile == Profile((), 50, 0)
    assert find_hot_lines(profile, 5) == []
    ElementTree.fromstring(draw_flame_graph(profile, "nothing"))
    assert parse_profile(b"") == Profile((), 0, 0)
    assert parse_profile(b"a 5") == Profile((ProfileStack(("a",), 5),), 5, 0)
