"""The web page in a real Chromium: first paint, a line of a log, frames while it scrolls, and memory of the server."""

from __future__ import annotations

import threading
import time
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, Page

from benchmarks import growth
from benchmarks.common import (
    BenchContext,
    Measure,
    Report,
    bar_at_least,
    bar_at_most,
    bar_of_time,
    median,
    print_progress,
)
from benchmarks.engine import BASE, poll_until
from benchmarks.gang import make_project
from benchmarks.home import Home, read_memory
from tests.support.web_scene import go, open_browser

_PAST = (10_000, 1000)  # experiments; in a smoke test the second number
_LINES = (1_000_000, 20_000)  # lines of the log; in a smoke test the second number
_PRINTED = 40  # lines that a job prints while the page shows its log
_PAGES = 20  # open at the same time
_SCROLLED = 3.0  # seconds
_STEP = 200  # pixels for each frame
_FIRST_PAINT = 0.300  # seconds
_LINE_TIME = 0.200  # seconds
_PAGE_TIME = 0.050  # seconds
_FRAMES = 50.0  # frames a second
_MEMORY = 200.0  # MiB
_CHART = (40, 10_000)  # curves, and points of each
_CHART_TIME = 0.500  # seconds until the chart is on the screen
_DEADLINE = 120.0  # seconds
_PAGE_CAUSE = "SQLite sorts all experiments by what the page is sorted by"
_CAUSE = "Chromium draws without a graphics card, on the same cores as the server"
_ALL = "/experiments?all=true&limit=100"
_QUERIES = (
    *(_ALL, f"{_ALL}&offset=5000", f"{_ALL}&sort=project", f"{_ALL}&sort=-ended", f"{_ALL}&sort=state&offset=9000"),
    *(f"{_ALL}&sort=-ended&state=FINISHED&text=lr%3D0.1", f"{_ALL}&metric=loss&sort=-metric", f"{_ALL}&before=5000"),
    *(f"{_ALL}&metric=accuracy&least=0.1&sort=metric&offset=5000",),
)
_REPORT = """printf 'riseml.report {"step": %s, "accuracy": 0.5, "loss": 0.25}\\n' 1 2 3"""
_SMALL = {"cpus": 0.1, "mem": "64MiB"}
_PRINTS = f"""
until [ -e "$OUTPUT_DIR/go" ]; do sleep 0.1; done
i=0; while [ $i -lt {_PRINTED} ]; do i=$((i+1)); echo "printed $(date +%s%3N)"; sleep 0.2; done; exec sleep 600
"""
_WATCH_ROWS = """
new MutationObserver((_, watcher) => {
  if (!document.querySelector('tr.row[data-id]')) return;
  window.firstRow = performance.now(); watcher.disconnect();
}).observe(document, {childList: true, subtree: true});
"""
_WATCH_LINES = """() => {
  window.seen = new Map();
  const look = () => {
    for (const one of document.querySelectorAll('.log-text')) {
      const at = /^printed (\\d+)$/.exec(one.textContent)?.[1];
      if (at && !window.seen.has(at)) window.seen.set(at, Date.now() - Number(at));
    }
  };
  new MutationObserver(look).observe(document.querySelector('.log-lines'), {childList: true, subtree: true});
}"""
_SCROLL = """async ([selector, step, seconds]) => {
  const scroller = document.querySelector(selector);
  scroller.scrollTop = 0;
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  await frame();
  const begun = performance.now();
  let frames = 0;
  while (performance.now() - begun < 1000 * seconds) {
    scroller.scrollTop += step;
    frames += 1;
    await frame();
  }
  return [frames / ((performance.now() - begun) / 1000), scroller.scrollTop];
}"""
_DRAW_CHARTS = """async ([curves, points, rounds]) => {
  const beside = document.querySelector('link[rel="modulepreload"][href$="/chart_plot.js"]').href;
  const load = (name) => import(new URL(`./${name}.js`, beside));
  const [data, axes, colours, plots, pictures] = await Promise.all(
    ['chart_data', 'chart_axes', 'chart_colours', 'chart_plot', 'chart_svg'].map(load));
  const at = '2026-11-28T10:00:00Z';
  const settings = { isLog: false, x: 'step', ignoresOutliers: false, showsBand: false };
  const lines = Array.from({ length: curves }, (_, curve) => {
    const buckets = Array.from({ length: points }, (_, step) => {
      const mean = curve + Math.sin(step / 50 + curve) + ((step * 7919 + curve) % 101) / 101;
      return { mean, min: mean, max: mean, last_step: step, first_at: at, last_at: at };
    });
    return data.makeLine({ name: `2.${curve}`, buckets }, curve, { x: 'step', smoothing: 0 });
  });
  const place = document.createElement('div');
  document.querySelector('main').replaceChildren(place);
  const own = axes.makeAxes(lines, settings, { metric: 'loss', xTitle: 'step' }, null);
  const model = { lines, axes: own, palette: colours.readPalette(), showsBand: false };
  const handlers = { zoom: () => {}, reset: () => {}, fail: () => {}, repaint: () => {}, describe: () => [] };
  const plot = new plots.CurvePlot(place, handlers);
  const shown = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  const time = async (draw) => {
    const begun = performance.now();
    await draw();
    await shown();
    return performance.now() - begun;
  };
  await time(() => plot.show(model)); // loads uPlot
  const times = [[], []];
  for (let round = 0; round < rounds; round += 1) {
    times[0].push(await time(() => plot.show({ ...model })));
    plot.end();
    const picture = () => pictures.drawSvg({ ...model, title: 'loss' }, place.clientWidth, 250);
    times[1].push(await time(() => place.replaceChildren(picture())));
    place.replaceChildren();
  }
  return times;
}"""


def run(context: BenchContext) -> Report:
    report = Report()
    size, lines = (pair[1 if context.quick else 0] for pair in (_PAST, _LINES))
    with Home(context, RISEML_EXECUTOR="process", RISEML_IDLE_AFTER="3600") as home, open_browser() as browser:
        _fill(context, home, size)
        _measure_queries(context, report, home, size)
        page = (tab := browser.new_context(viewport={"width": 1280, "height": 800})).new_page()
        go(page, lambda: _request_address(home))
        _measure_first_paint(context, report, tab, page.url)
        _measure_table(report, page, size)
        _measure_charts(context, report, page)
        _measure_line(context, report, home, page)
        _measure_log(context, report, home, page, lines)
        _measure_memory(report, home, tab, page.url)
    return report


def _request_address(home: Home) -> str:
    """Return the address of the page with which a browser signs in."""
    with home.client() as client:
        return str(client.post("/web", json={}).raise_for_status().json()["url"])


def _fill(context: BenchContext, home: Home, size: int) -> None:
    """Fill the store with finished experiments: copies of one that ran."""
    train = {"image": BASE, "resources": _SMALL, "run": _REPORT, "parameters": {"lr": 0.1}}
    home.wait_closed(home.train(make_project(context, train, "one")))
    home.stop()  # the server saves the counts of metrics when it ends
    growth.copy_first_experiment(home.folder / "riseml.db", size - 1)
    home.run("status")


def _measure_queries(context: BenchContext, report: Report, home: Home, size: int) -> None:
    measures = []
    with home.client() as client:
        for query in _QUERIES:
            values = []
            for _ in range(context.rounds(15, 2) + 1):
                begun = time.perf_counter()
                experiments = client.get(query).raise_for_status().json()["experiments"]
                values.append(time.perf_counter() - begun)
                if len(experiments) != 100 and "offset" not in query and "before" not in query:
                    raise AssertionError(f"GET {query} shows {len(experiments)} experiments, not 100")
            measures.append(Measure(f"GET {query}", tuple(values[1:]), "ms"))
    report.add(f"a page of {size:,} experiments", *measures)
    slowest = max(measure.median for measure in measures)
    report.bars.append(bar_of_time(f"any page of {size:,} experiments", slowest, _PAGE_TIME, "ms", _PAGE_CAUSE))


def _measure_first_paint(context: BenchContext, report: Report, tab: BrowserContext, url: str) -> None:
    paints = []
    rows = []
    for turn in range(context.rounds(9, 2)):
        page = tab.new_page()
        page.add_init_script(_WATCH_ROWS)
        go(page, lambda: url)
        page.locator("tr.row[data-id]").first.wait_for()
        paint, row = page.evaluate(
            "[performance.getEntriesByName('first-contentful-paint')[0].startTime, window.firstRow]"
        )
        page.close()
        if turn:  # the first page fills the caches
            paints.append(paint / 1000)
            rows.append(row / 1000)
    report.add("the table of all experiments", Measure("first paint", tuple(paints), "ms"))
    report.add("the table of all experiments", Measure("the first row", tuple(rows), "ms"))
    report.bars.append(bar_of_time("first paint", median(paints), _FIRST_PAINT, "ms", _CAUSE))


def _measure_table(report: Report, page: Page, size: int) -> None:
    go(page, lambda: page.url)
    page.locator(f'table[aria-rowcount="{size + 1}"]').wait_for(timeout=1000 * _DEADLINE)
    frames, reached = page.evaluate(_SCROLL, [".scroller", _STEP, _SCROLLED])
    if reached < _STEP or not page.locator("tr.row[data-id] a").last.text_content():
        raise AssertionError("the table did not scroll")
    report.add("frames a second while it scrolls", Measure(f"a table of {size:,} rows", (frames,), "fps"))
    report.bars.append(bar_at_least(f"scrolling {size:,} rows", frames, _FRAMES, "fps", _CAUSE))


def _measure_charts(context: BenchContext, report: Report, page: Page) -> None:
    """Measure a chart until it is on the screen, and the same chart as SVG."""
    _show(page, "/experiments/1")
    page.locator("canvas").first.wait_for()
    own, svg = page.evaluate(_DRAW_CHARTS, [*_CHART, context.rounds(9, 2)])
    title = f"a chart of {_CHART[0]} curves with {_CHART[1]:,} points each"
    for name, values in ("uPlot, as the page has it", own), ("the same as SVG", svg):
        report.add(title, Measure(name, tuple(value / 1000 for value in values), "ms"))
    report.bars.append(bar_of_time(title, median(own) / 1000, _CHART_TIME, "ms", _CAUSE))


def _measure_line(context: BenchContext, report: Report, home: Home, page: Page) -> None:
    train = {"image": BASE, "resources": _SMALL, "run": _PRINTS}
    experiment = home.train(make_project(context, train, "prints"))
    home.wait_jobs(experiment, "RUNNING", 1)
    _show(page, f"/experiments/{experiment}/log")
    page.locator(".log").wait_for()
    page.evaluate(_WATCH_LINES)
    Path(home.get(f"/experiments/{experiment}")["output"], "go").touch()
    poll_until("all lines are on the page", lambda: page.evaluate("window.seen.size") >= _PRINTED, _DEADLINE, 0.5)
    waits = tuple(value / 1000 for value in page.evaluate("[...window.seen.values()]"))
    home.kill(experiment)
    report.add("from a job's print to the page", Measure("a line of the log", waits, "ms"))
    report.bars.append(bar_of_time("from a job's print to the line on the page", median(waits), _LINE_TIME, "ms"))


def _measure_log(context: BenchContext, report: Report, home: Home, page: Page, lines: int) -> None:
    train = {"image": BASE, "resources": _SMALL, "run": f"seq -f 'line %.0f of a long log' {lines}"}
    experiment = home.train(make_project(context, train, "long"))
    print_progress(f"  a job prints {lines:,} lines")
    home.wait_closed(experiment)
    begun = time.perf_counter()
    _show(page, f"/experiments/{experiment}/log")
    page.get_by_role("link", name=f"Line {lines}", exact=True).wait_for(timeout=1000 * _DEADLINE)
    report.add("a long log", Measure(f"{lines:,} lines are open at their end", (time.perf_counter() - begun,), "ms"))
    frames, reached = page.evaluate(_SCROLL, [".log", _STEP, _SCROLLED])
    page.locator(".log-text").nth(20).wait_for()
    if reached < _STEP:
        raise AssertionError("the log did not scroll")
    report.add("frames a second while it scrolls", Measure(f"a log of {lines:,} lines", (frames,), "fps"))
    report.bars.append(bar_at_least(f"scrolling {lines:,} lines", frames, _FRAMES, "fps", _CAUSE))


def _measure_memory(report: Report, home: Home, tab: BrowserContext, url: str) -> None:
    views = ("/", "/experiments/1", "/pool", "/experiments/1/log")
    pages = [tab.new_page() for _ in range(_PAGES)]
    for at, page in enumerate(pages):
        go(page, partial(_find_address, url, views[at % len(views)]))
    for page in pages:
        page.locator('#connection[data-connection="live"]').wait_for(timeout=1000 * _DEADLINE)
    threading.Event().wait(2)
    used = read_memory(home.server()["pid"])
    report.add("the server's memory", Measure(f"{_PAGES} open pages", (used,), "MiB"))
    report.bars.append(bar_at_most(f"the server's memory with {_PAGES} open pages", used, _MEMORY, "MiB"))


def _show(page: Page, path: str) -> None:
    go(page, partial(_find_address, page.url, path))


def _find_address(url: str, path: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{path}"
