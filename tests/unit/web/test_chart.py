"""Charts of the web page: what their axes show."""

from __future__ import annotations

from tests.support.javascript import run_page

CHART = """
const { drawChart, makeLine } = await import("./chart.js");
const draw = (values, smoothing = 0, isLog = false) => {
  const buckets = values.map((mean, at) => ({ mean, min: mean, max: mean, last_step: at, first_at: "", last_at: "" }));
  const options = { isLog, isTime: false, smoothing };
  const { picture } = drawChart([makeLine({ name: "loss", buckets }, options)], options, "loss");
  return picture.querySelectorAll("text").map((one) => one.textContent);
};
"""


def test_an_axis_has_round_numbers() -> None:
    shown = run_page(f"{CHART} return [draw([0, 1]), draw([1, 1000], 0, true)]")
    assert shown[0] == ["0", "0.5", "1", "0", "0.2", "0.4", "0.6", "0.8", "1"]
    assert shown[1][:4] == ["1", "10", "100", "1 000"]


def test_values_that_differ_in_their_last_bits_alone_are_drawn() -> None:
    """A metric that stays the same differs so by rounding: as a mean of equal values, or by the chart's smoothing."""
    same = "[draw([0.3, 0.1 + 0.2]), draw(Array(50).fill(0.295), 0.95), draw([1e22, 1e22 + 2e6])]"
    assert [one[0] for one in run_page(f"{CHART} return {same}")] == ["0.3", "0.295", "1.000e+22"]
