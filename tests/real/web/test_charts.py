"""The charts of the page in Chromium: what they show, by the command line's own values, and what users do with them."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.support.command import RISEML
from tests.support.rig import Rig, single
from tests.support.web_scene import WAIT, enter, find_barriers, make_home, show

_LONG = """
for step in range(5000):
    value = 9.0 if step == 3210 else 0.5 + 0.00001 * step
    text = "NaN" if step in (1000, 4999) else repr(value)
    print('riseml.report {"step": %d, "loss": %s, "epoch": %s}' % (step, text, step / 25))
"""
_TRIAL = """
lr, batch = float("{{lr}}"), int("{{batch}}")
for step in [100] if lr > 0.3 else range(100, 3700, 100):
    print('riseml.report {"step": %d, "loss": %r}' % (step, lr + batch / step))
"""
_CELLS = "rows => rows.map(({ cells }) => [...cells].map((cell) => cell.textContent))"
_WATCH_POLICY = """
window.refused = [];
addEventListener('securitypolicyviolation', (event) => window.refused.push(event.violatedDirective));
"""
_SIZES = (1440, 1024, 820, 390)

expect.set_options(timeout=WAIT)


def _run(script: str) -> str:
    return f"{sys.executable} - <<'END'\n{script}\nEND"


def fill(rig: Rig) -> None:
    """Experiment 1 has a long curve with one spike and two values that are NaN; set 2 has eight curves, two with one
    value."""
    rig.submit(single(_run(_LONG)))
    train = {
        "image": "unused",
        "run": _run(_TRIAL),
        "resources": {"cpus": 0.1, "mem": "64MiB"},
        "parameters": {"lr": [0.1, 0.2, 0.3, 0.4], "batch": [1, 4]},
        "concurrency": 8,
    }
    rig.submit(json.dumps({"project": "sweep", "train": train}))
    rig.wait_closed("1")
    rig.wait_closed("2")
    rig.post("/v1/experiments/2.1/annotation", {"add_tags": ["baseline"]})


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """The server of `fill`."""
    with make_home(tmp_path_factory.mktemp("charts")) as rig:
        try:
            fill(rig)
            yield rig
        finally:
            rig.clean_up()


@pytest.fixture(scope="module")
def entered(scene: Rig, browser: Browser) -> Iterator[Page]:
    """A page that the server has let in, for the whole module."""
    page = enter(browser, scene, viewport={"width": 1280, "height": 900})
    yield page
    page.context.close()


def open_chart(page: Page, path: str, metric: str = "loss") -> Locator:
    show(page, path)
    chart = page.get_by_role("region", name=f"Metric {metric}", exact=True)
    expect(chart.locator("canvas").first).to_be_visible()
    return chart


def open_more(chart: Locator) -> None:
    """Show all controls of a chart."""
    if not chart.locator("details[open]").count():
        chart.locator("summary").click()


def read_chart(page: Page, chart: Locator) -> list[list[str]]:
    """Return the table behind a chart, its heads first."""
    if chart.get_by_role("table").count() == 0:
        open_more(chart)
        chart.get_by_role("button", name="Table of").click()
    rows = chart.get_by_role("table").locator("tr")
    texts: list[list[str]] = rows.evaluate_all(
        "rows => rows.map(({ cells }) => [...cells].map((cell) => cell.textContent))"
    )
    return texts


def find_plot(chart: Locator) -> tuple[float, float, float, float]:
    """Return left, top, width and height of where the curves are."""
    box = chart.locator(".u-over").bounding_box()
    assert box is not None
    return box["x"], box["y"], box["width"], box["height"]


def drag(page: Page, chart: Locator, shares: tuple[float, float], *, height: float = 0.5) -> None:
    """Drag from one share of the width to the other."""
    left, top, width, tall = find_plot(chart)
    page.mouse.move(left + shares[0] * width, top + height * tall)
    page.mouse.down()
    page.mouse.move(left + shares[1] * width, top + height * tall, steps=5)
    page.mouse.up()


def read_settings_of(page: Page, metric: str) -> dict[str, list[str]]:
    """Return what the address says about a chart."""
    (text,) = parse_qs(urlsplit(page.url).query).get(f"chart.{metric}", [""])
    return parse_qs(text)


def ask(rig: Rig, *words: str) -> str:
    """Return what a command prints."""
    return subprocess.run([RISEML, *words], env=rig.environ(), capture_output=True, text=True, check=True).stdout


def test_the_cursor_names_the_curves_that_have_a_value_there_and_no_other(scene: Rig, entered: Page) -> None:
    """Two of eight curves have one value, at step 100."""
    page = entered
    chart = open_chart(page, "/experiments/2")
    left, top, width, _ = find_plot(chart)
    page.mouse.move(left + 0.5 * width, top + 80)
    tip = chart.locator(".tip")
    expect(tip).to_be_visible()
    names = tip.locator(".key").all_text_contents()
    assert sorted(names) == ["2.1", "2.2", "2.3", "2.4", "2.5", "2.6"]
    (head,) = tip.locator("div.soft").all_text_contents()
    step = int(head.removeprefix("step ").replace(" ", ""))
    history = scene.get("/v1/experiments/2.4/metrics/history", metric="loss")["buckets"]
    (value,) = [bucket["mean"] for bucket in history if bucket["last_step"] == step]
    shown = tip.locator("div", has_text="2.4").locator("strong").text_content()
    assert float(shown or "") == pytest.approx(value, rel=1e-4)
    page.mouse.move(left + 0.02 * width, top + 80)
    expect(tip.locator(".key")).to_have_count(8)
    page.mouse.move(left + 0.5 * width, top - 60)
    expect(tip).to_be_hidden()


def test_a_drag_zooms_and_a_double_click_resets(entered: Page) -> None:
    page = entered
    chart = open_chart(page, "/experiments/2")
    page.evaluate("document.body.dataset.stays = 'yes'")
    reset = chart.get_by_role("button", name="Reset zoom")
    expect(reset).to_be_hidden()
    drag(page, chart, (0.25, 0.5))
    expect(reset).to_be_visible()
    (zoom,) = read_settings_of(page, "loss")["zoom"]
    first, last = map(float, zoom.split())
    assert 800 < first < 1200
    assert 1700 < last < 2100
    assert page.evaluate("getSelection().toString()") == ""
    page.keyboard.down("Shift")
    drag(page, chart, (0.5, 0.25))
    page.keyboard.up("Shift")
    moved = [float(number) for number in read_settings_of(page, "loss")["zoom"][0].split()]
    assert moved[1] - moved[0] == pytest.approx(last - first)
    assert moved[0] > first
    left, top, width, height = find_plot(chart)
    page.mouse.dblclick(left + width / 2, top + height / 2)
    expect(reset).to_be_hidden()
    assert "chart.loss" not in page.url
    chart.get_by_role("img").focus()
    page.keyboard.press("+")
    expect(reset).to_be_visible()
    page.keyboard.press("0")
    expect(reset).to_be_hidden()
    assert page.evaluate("document.body.dataset.stays") == "yes"


def test_the_legend_hides_isolates_and_sorts(entered: Page) -> None:
    page = entered
    chart = open_chart(page, "/experiments/2")
    keys = chart.get_by_role("group", name="Curves of loss").locator(".key")
    expect(keys).to_have_count(8)
    keys.nth(0).click()
    expect(keys.nth(0)).to_have_attribute("aria-pressed", "false")
    assert [head.split(" ")[0] for head in read_chart(page, chart)[0]][1:] == [f"2.{sub}" for sub in range(2, 9)]
    keys.nth(2).click(modifiers=["Alt"])
    assert read_chart(page, chart)[0][1:] == ["2.3"]
    keys.nth(2).click(modifiers=["ControlOrMeta"])
    expect(chart.locator('.key[aria-pressed="false"]')).to_have_count(0)
    open_more(chart)
    chart.get_by_label("Sort by value of loss").check()
    expect(keys.nth(0)).to_contain_text("2.8")
    expect(keys.nth(7)).to_contain_text("2.1")
    chart.get_by_label("Sort by value of loss").uncheck()


def test_settings_stay_in_the_address_and_in_the_browser(scene: Rig, entered: Page) -> None:
    page = entered
    chart = open_chart(page, "/experiments/2", "loss")
    chart.get_by_label("Logarithmic axis of loss").check()
    chart.get_by_label("Smoothing of loss").fill("0.6")
    expect(chart.get_by_role("heading")).to_have_text("loss EMA 0.60")
    address = page.url
    chart = open_chart(page, "/experiments/2")
    expect(chart.get_by_label("Logarithmic axis of loss")).to_be_checked()
    expect(chart.get_by_label("Smoothing of loss")).to_have_value("0.6")
    chart.get_by_label("Logarithmic axis of loss").uncheck()
    chart.get_by_label("Smoothing of loss").fill("0")
    assert "chart.loss" not in page.url
    show(page, f"{urlsplit(address).path}?{urlsplit(address).query}")
    expect(chart.get_by_label("Logarithmic axis of loss")).to_be_checked()
    chart.get_by_label("Logarithmic axis of loss").uncheck()
    chart.get_by_label("Smoothing of loss").fill("0")


@pytest.mark.parametrize("band", ["range", "error"])
def test_groups_have_the_values_of_the_command_line(scene: Rig, entered: Page, band: str) -> None:
    page = entered
    chart = open_chart(page, "/experiments/2")
    chart.get_by_label("Groups of loss").select_option("batch")
    chart.get_by_label("Band of loss").select_option(band)
    expect(chart.get_by_role("img", name="loss of 2 groups by batch")).to_be_visible()
    found = json.loads(ask(scene, "plot", "2", "loss", "--by", "batch", "--band", band, "--json"))
    heads, *rows = read_chart(page, chart)
    assert heads[1:] == ["batch=1 (n = 4)", "batch=4 (n = 4)"]
    saved = save(page, chart, "CSV").read_text()
    points = list(csv.DictReader(io.StringIO(saved)))
    for series, name in zip(found["series"], heads[1:], strict=True):
        curve = [point for point in points if point["curve"] == name]
        assert [[float(one["x (step)"]), float(one["loss"])] for one in curve] == series["points"]
        edges = [[float(one["x (step)"]), float(one["least"]), float(one["largest"])] for one in curve]
        assert edges == [pytest.approx(edge) for edge in series["band"]]
    assert rows[0][1].endswith("(n = 4)")
    assert rows[-1][1].endswith("(n = 3)"), "one curve of each group has ended at step 100"
    chart.get_by_label("Members of loss").check()
    assert len(list(csv.DictReader(io.StringIO(save(page, chart, "CSV").read_text())))) > len(points)
    chart.get_by_label("Members of loss").uncheck()
    chart.get_by_label("Groups of loss").select_option("tag")
    expect(chart.locator(".key").first).to_contain_text("baseline (n = 1)")
    chart.get_by_label("Band of loss").select_option("range")
    chart.get_by_label("Groups of loss").select_option("")


def save(page: Page, chart: Locator, kind: str) -> Path:
    """Return the file that a user saves."""
    open_more(chart)
    with page.expect_download() as waiting:
        chart.get_by_role("button", name=f"Save loss as {kind}").click()
    assert waiting.value.suggested_filename == f"loss.{kind.lower()}"
    return waiting.value.path()


def test_a_long_curve_keeps_its_spike_and_what_is_not_finite(scene: Rig, entered: Page) -> None:
    """The last value is NaN: the page says so, as the command line does, and does not show the mean before it."""
    page = entered
    chart = open_chart(page, "/experiments/1")
    expect(chart.get_by_role("img", name="loss, last nan")).to_be_visible()
    assert "nan" in ask(scene, "results", "1")
    points = list(csv.DictReader(io.StringIO(save(page, chart, "CSV").read_text())))
    assert len(points) <= 256
    assert max(float(point["largest"]) for point in points) == 9.0
    assert sum(int(point["not finite"]) for point in points) == 2
    assert any("1 not finite" in row[1] for row in read_chart(page, chart)[1:])
    svg = save(page, chart, "SVG").read_text()
    assert svg.count("<polygon") == 1
    assert svg.count("<path") == 2, "two marks"
    assert ">step</text>" in svg
    assert save(page, chart, "PNG").read_bytes().startswith(b"\x89PNG")


def test_x_is_time_or_another_metric(entered: Page) -> None:
    page = entered
    chart = open_chart(page, "/experiments/1")
    for x, head in ("epoch", "epoch"), ("time", "time in seconds"), ("step", "step"):
        chart.get_by_label("X axis of loss").select_option(x)
        read_chart(page, chart)
        expect(chart.get_by_role("columnheader").first).to_have_text(head)
        rows = read_chart(page, chart)[1:]
        assert len(rows) > 20
        if x == "epoch":
            assert float(rows[-1][0]) == pytest.approx(199.5, abs=1)


_EDGE = """canvas => {
  const { width, height } = canvas;
  const pixels = canvas.getContext('2d').getImageData(width - 2, 0, 2, height).data;
  return pixels.some((value) => value !== 0);
}"""


def test_text_has_the_size_of_the_page_and_the_last_tick_is_whole(entered: Page) -> None:
    page = entered
    chart = open_chart(page, "/experiments/1")
    for width in _SIZES:
        page.set_viewport_size({"width": width, "height": 900})
        box = chart.locator(".plot").bounding_box()
        assert box is not None
        expect(chart.locator("canvas").first).to_have_js_property("width", round(box["width"]))
        assert chart.locator("canvas").first.evaluate(_EDGE) is False, f"something reaches the edge at {width} px"
        scales = page.locator("svg:is(.timeline, .chart) text").evaluate_all(
            "all => all.map((one) => one.getScreenCTM().a)"
        )
        assert all(scale == pytest.approx(1, abs=0.01) for scale in scales), width
    page.set_viewport_size({"width": 1280, "height": 900})


def test_charts_are_accessible_and_the_keyboard_is_enough(entered: Page) -> None:
    page = entered
    chart = open_chart(page, "/experiments/2")
    chart.get_by_role("img").focus()
    page.keyboard.press("ArrowRight")
    expect(chart.get_by_role("status")).to_contain_text("step 100: 2.1")
    page.keyboard.press("ArrowRight")
    expect(chart.get_by_role("status")).to_contain_text("step 200: 2.1")
    expect(chart.get_by_role("status")).not_to_contain_text("2.8")
    chart.locator(".keys-of-chart .key").first.click(modifiers=["Alt"])
    read_chart(page, chart)
    for width in _SIZES:
        page.set_viewport_size({"width": width, "height": 900})
        assert find_barriers(page, '[aria-label="Metric loss"]') == [], width
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.set_viewport_size({"width": 1280, "height": 900})


def test_the_policy_of_the_page_holds(scene: Rig, browser: Browser) -> None:
    """Nothing that uPlot does is refused by it."""
    page = enter(browser, scene)
    page.add_init_script(_WATCH_POLICY)
    chart = open_chart(page, "/experiments/2")
    drag(page, chart, (0.25, 0.5))
    save(page, chart, "PNG")
    assert page.evaluate("window.refused") == []
    page.context.close()
