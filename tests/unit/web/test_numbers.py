"""Texts that are numbers on the page: as `riseml.analysis.numbers` has them."""

from __future__ import annotations

import json

import pytest

from riseml.analysis.numbers import are_numbers
from tests.support.javascript import run_page

CASES = [
    ["0.1", "1e-3"],
    ["2.1", "2.10"],
    ["01", "1"],
    ["1e5", "100000"],
    ["0x10"],
    ["auto", "1"],
    ["-.5", "5."],
    ["1"],
]


def test_the_page_takes_the_same_texts_for_numbers_as_the_server() -> None:
    script = f"""
    const {{ areNumbers }} = await import("./numbers.js");
    return {json.dumps(CASES)}.map(areNumbers);
    """
    assert run_page(script) == [are_numbers(case) for case in CASES]


@pytest.mark.parametrize(
    ("text", "matching"),
    [
        ("v=2.10", ["2.10"]),
        ("v=1", ["1"]),
        ("v=01", ["01"]),
        ("v=1e5", ["1e5"]),
        ("v=100000.0", []),
        ("v>2.05", ["2.1", "2.10", "1e5", "9007199254740993"]),
        ("v=9007199254740992", []),
        ("state:stopped_early", ["1e5"]),
    ],
)
def test_the_filter_compares_parameters_as_they_are_written(text: str, matching: list[str]) -> None:
    script = f"""
    const {{ parseFilter }} = await import("./filter.js");
    const texts = ["2.1", "2.10", "1", "01", "1e5", "9007199254740993"];
    const makeRow = (v) => ({{ view: {{ parameters: {{ v }}, state: "FINISHED", reason: v === "1e5" ? "STOPPED_EARLY" : "COMPLETED" }}, metrics: [], lasts: new Map() }});
    return texts.filter((v) => parseFilter({json.dumps(text)})(makeRow(v)));
    """  # noqa: E501  # a row of JavaScript
    assert run_page(script) == matching


def test_an_axis_of_texts_shows_them_as_they_are_written() -> None:
    script = """
    const { ParallelPanel } = await import("./parallel.js");
    const ticks = (texts) => {
      const panel = new ParallelPanel();
      panel.show(["v", "loss"], texts.map((v, at) => ({ id: `2.${at}`, values: [v, at] })));
      const axis = panel.place.querySelectorAll("g").find((one) => one.getAttribute("class") === "words");
      return axis.querySelectorAll("text").slice(0, -1).map((one) => one.textContent);
    };
    return [ticks(["2.10", "3.5"]), ticks(["2.1", "2.10"]), ticks(["01", "02"])];
    """
    assert run_page(script) == [["2.10", "3.5"], ["2.1", "2.10"], ["01", "02"]]
