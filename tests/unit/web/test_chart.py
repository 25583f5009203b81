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


def test_a_flat_line_has_an_axis_near_its_value_or_to_the_values_that_it_beats() -> None:
    script = """
    const { drawChart, makeLine } = await import("./chart.js");
    const { listBest } = await import("./set.js");
    const draw = (values, goal = "maximize", isLog = false) => {
      const make = (value, at) => ({ id: `1.${at + 1}`, ended_at: `2026-11-28T10:00:0${at}Z`, value, scores: {} });
      const experiments = values.map(make);
      const options = { isLog, isTime: false, smoothing: 0 };
      const line = makeLine({ name: "best", ...listBest(experiments, "m", goal) }, options);
      const texts = drawChart([line], options, "m").picture.querySelectorAll("text");
      return texts.filter((one) => one.getAttribute("text-anchor") === "end").map((one) => Number(one.textContent));
    };
    return [
      draw([0.98]),
      draw([0.9, 0.5, 0.6, 0.7, -1e9]),
      draw([0.1, 0.5, 0.3, 1e30], "minimize"),
      draw([0.001, 0.5, 10, 1e30], "minimize", true),
      draw([0.5, 0.9, -1e9]),
      draw([0]),
    ];
    """
    alone, beats, least, powers, rising, zero = run_page(script)
    assert min(alone) >= 0.8, "not from the half of the value to one and a half of it"
    assert max(alone) <= 1.2
    assert min(beats) >= 0.5, "to the median of all, 0.6, and not to the worst"
    assert max(beats) <= 1
    assert min(least) >= 0
    assert 0.25 <= max(least) <= 0.4
    assert powers == [0.001, 0.01, 0.1]
    assert min(rising) >= 0.4, "a line that rises has its own range"
    assert min(zero) < 0 < max(zero)


def test_trials_that_end_in_the_same_second_are_in_the_order_of_their_numbers() -> None:
    """The results come with the best one first."""
    script = """
    const { listBest } = await import("./set.js");
    const trials = [[12, 0.9], [2, 0.5], [1, 0.1]];
    const make = ([at, value]) => ({ id: `1.${at}`, ended_at: "2026-11-28T10:00:00Z", value, scores: {} });
    const experiments = trials.map(make);
    return listBest(experiments, "m", "maximize").buckets.map(({ mean, last_step }) => [last_step, mean]);
    """
    assert run_page(script) == [[1, 0.1], [2, 0.1], [2, 0.5], [3, 0.5], [3, 0.9]]


def test_values_that_differ_in_their_last_bits_alone_are_drawn() -> None:
    """A metric that stays the same differs so by rounding: as a mean of equal values, or by the chart's smoothing."""
    same = "[draw([0.3, 0.1 + 0.2]), draw(Array(50).fill(0.295), 0.95), draw([1e22, 1e22 + 2e6])]"
    assert [one[0] for one in run_page(f"{CHART} return {same}")] == ["0.3", "0.295", "1.000e+22"]
