"""The axes of charts: what they hold and their ticks."""

from __future__ import annotations

from tests.support.javascript import run_page

AXES = """
const { listPowers, listTicks, makeAxes } = await import("./chart_axes.js");
const { makeLine } = await import("./chart_data.js");
const make = (values, { range = [], ...changes } = {}, zoom = null) => {
  const settings = { isLog: false, x: "step", ignoresOutliers: false, showsBand: false, ...changes };
  const buckets = values.map((mean, at) => ({ mean, min: mean, max: mean, last_step: at, first_at: "", last_at: "" }));
  const lines = [makeLine({ name: "loss", buckets, range }, 0, { x: "step", smoothing: 0 })];
  return makeAxes(lines, settings, { metric: "loss", xTitle: "step" }, zoom);
};
const texts = (ticks) => ticks.map(({ text }) => text);
const y = (...arguments_) => { const axes = make(...arguments_); return texts(axes.yTicks(...axes.y, 5)); };
"""


def test_an_axis_has_round_numbers_and_titles() -> None:
    script = "const axes = make([0, 1]); return [y([0, 1]), texts(axes.xTicks(...axes.x, 6)), axes.xTitle, axes.yTitle]"
    assert run_page(AXES + script) == [["0", "0.5", "1"], ["0", "0.2", "0.4", "0.6", "0.8", "1"], "step", "loss"]


def test_a_logarithmic_axis_has_ticks_at_1_2_and_5() -> None:
    script = """
    const log = { isLog: true };
    return [y([0.1, 1], log), y([1, 1e9], log), y([0, -1, 1, 1000], log), y([3, 3.5], log), make([1], log).yTitle];
    """
    decade, many, positive, narrow, title = run_page(AXES + script)
    assert decade == ["0.1", "0.2", "0.5", "1"]
    assert many == ["1", "100", "10 000", "1 000 000", "100 000 000"]
    assert positive == ["1", "10", "100", "1 000"]
    assert len(set(narrow)) == len(narrow) > 1
    assert title == "loss (log)"


def test_an_axis_of_time_has_a_unit_and_no_number_twice() -> None:
    script = """
    const times = (seconds) => {
      const axes = make([1, 2], { x: "time" }, { x: [0, seconds], y: null });
      return [axes.xTitle, texts(axes.xTicks(0, seconds, 6))];
    };
    return [0.002, 3, 200, 7200, 86400 * 3].map(times);
    """
    shown = run_page(AXES + script)
    assert [title for title, _ in shown] == [
        *("time in seconds", "time in seconds", "time in minutes", "time in hours", "time in days")
    ]
    assert shown[1][1] == ["0", "0.5", "1", "1.5", "2", "2.5", "3"]
    assert shown[3][1] == ["0", "0.5", "1", "1.5", "2"]
    for _, texts in shown:
        assert len(set(texts)) == len(texts) > 2


def test_a_flat_line_has_an_axis_near_its_value_or_to_the_values_that_it_beats() -> None:
    script = """
    const { listBest } = await import("./set.js");
    const best = (values, goal = "maximize", isLog = false) => {
      const trial = (value, at) => ({ id: `1.${at + 1}`, ended_at: `2026-11-28T10:00:0${at}Z`, value, scores: {} });
      const { buckets, range } = listBest(values.map(trial), "m", goal);
      return y(buckets.map(({ mean }) => mean), { range, isLog }).map(Number);
    };
    return [
      best([0.98]),
      best([0.9, 0.5, 0.6, 0.7, -1e9]),
      best([0.1, 0.5, 0.3, 1e30], "minimize"),
      best([0.001, 0.5, 10, 1e30], "minimize", true),
      best([0.5, 0.9, -1e9]),
      best([0]),
    ];
    """
    alone, beats, least, powers, rising, zero = run_page(AXES + script)
    assert min(alone) >= 0.8, "not from the half of the value to one and a half of it"
    assert max(alone) <= 1.2
    assert min(beats) >= 0.5, "to the median of all, 0.6, and not to the worst"
    assert max(beats) <= 1
    assert min(least) >= 0
    assert 0.25 <= max(least) <= 0.4
    assert {0.001, 0.01, 0.1} <= set(powers)
    assert min(rising) >= 0.4, "a line that rises has its own range"
    assert min(zero) < 0 < max(zero)


def test_values_that_differ_in_their_last_bits_alone_are_drawn() -> None:
    """A metric that stays the same differs so by rounding, as a mean of equal values."""
    script = "return [y([0.3, 0.1 + 0.2]), y([1e22, 1e22 + 2e6]), y([1e300, -1e300])].map((one) => one.length > 0)"
    assert run_page(AXES + script) == [True, True, True]


def test_an_axis_ignores_outliers_and_holds_extremes_on_wish() -> None:
    script = """
    const values = [...Array(100).fill(0).map((_, at) => at / 100), 1e6];
    return [make(values).y[1], make(values, { ignoresOutliers: true }).y[1]];
    """
    whole, inner = run_page(AXES + script)
    assert whole > 1e6
    assert 0.9 < inner < 1.1
