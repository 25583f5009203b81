"""Texts that are numbers on the page: as `riseml.analysis.numbers` has them."""

from __future__ import annotations

import json

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
