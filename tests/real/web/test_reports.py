"""Reports on the page: written in the editor, live, shared by their address, and safe whatever their Markdown says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.real.api.test_dry_run import riseml
from tests.real.web.test_media import write
from tests.real.web.test_one_experiment import EVIL, is_clean, make_png
from tests.support.rig import Rig, single
from tests.support.web_scene import WAIT, enter, find_barriers, make_home, show

REPORT = 'printf \'riseml.report {"step": %s, "loss": 0.%s}\\n\' $i $((9 - i))'
RUN = f"""
i=0; while [ $i -lt 3 ]; do i=$((i+1)); {REPORT}; done
while [ ! -e "$OUTPUT_DIR/go" ]; do sleep 0.1; done
i=7; {REPORT}; exec sleep 3600
"""
BLOCKS = "```table\nruns: [1, 2]\ncolumns: [state, loss]\n```\n\n```media\nruns: [1]\nname: samples\nstep: 15\n```\n"
HOSTILE = f"""
{EVIL} [a](javascript:window.pwned=1) [b](https://example.org/) ![pixel](http://127.0.0.1:1/pixel.png)

<div onclick="window.pwned=1">x</div>

| {EVIL} | b |
|---|---|
| `{EVIL}` | <svg onload=window.pwned=1> |

```html
{EVIL}
```

```chart
runs: [1, 77]
metric: "{EVIL.replace('"', "'")}"
title: "{EVIL.replace('"', "'")}"
```
"""

expect.set_options(timeout=WAIT)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """A server with two experiments that run and report."""
    with make_home(tmp_path_factory.mktemp("reports")) as rig:
        try:
            for number in ("1", "2"):
                rig.submit(single(RUN))
                rig.wait_state(number, "RUNNING")
            for step in (10, 20):
                write(Path(rig.experiment("1")["output"]), f"samples/{step}.png", make_png())
            yield rig
        finally:
            rig.clean_up()


@pytest.fixture(scope="module")
def entered(scene: Rig, browser: Browser) -> Iterator[Page]:
    page = enter(browser, scene)
    yield page
    page.context.close()


def fill_editor(page: Page, name: str, text: str) -> None:
    """Write a new report, and wait until the preview shows it."""
    show(page, "/reports?edit=1")
    page.get_by_label("Name, a part of the address").fill(name)
    with page.expect_response("**/reports/preview"):
        page.get_by_label("Markdown").fill(text)


def test_a_report_is_written_shown_live_changed_and_deleted(scene: Rig, entered: Page) -> None:
    page = entered
    show(page, "/reports")
    expect(page.get_by_text("No report is kept so far.")).to_be_visible()
    page.get_by_role("link", name="New report").click()
    preview = page.get_by_role("region", name="Preview")
    expect(preview.get_by_role("heading", name="Title")).to_be_visible()
    page.get_by_label("Name, a part of the address").fill("Bad Name")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("'Bad Name' is no name of a report")
    page.get_by_label("Name, a part of the address").fill("sweep")
    page.get_by_label("Markdown").fill("# It falls\n\n")
    page.get_by_role("button", name="Add chart").click()
    expect(preview.get_by_role("heading", name="It falls")).to_be_visible()
    expect(preview.get_by_role("region", name="Metric loss").locator(".u-over")).to_be_visible()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status").filter(has_text="Saved sweep, version 1.")).to_be_visible()
    assert page.url.endswith("/reports/sweep")
    chart = page.get_by_role("region", name="Metric loss")
    expect(chart.get_by_role("button", name="1 0.6")).to_be_visible()
    (Path(scene.experiment("1")["output"]) / "go").touch()
    expect(chart.get_by_role("button", name="1 0.2")).to_be_visible()  # the run goes on
    page.get_by_role("link", name="Edit").click()
    page.get_by_label("Markdown").fill(f"# It falls\n\n{BLOCKS}")
    expect(preview.get_by_role("table", name="Runs").get_by_role("row")).to_have_count(3)
    page.get_by_role("button", name="Save").click()
    panel = page.get_by_role("region", name="Media samples, picture")
    expect(panel).to_contain_text("step 10 (1 of 2)")  # the last one up to step 15
    expect(panel.locator("figure img")).to_have_js_property("naturalWidth", 8)
    show(page, "/reports")
    expect(page.get_by_role("row").filter(has_text="sweep")).to_contain_text("It falls")
    page.get_by_role("link", name="It falls").click()
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("No report is kept so far.")).to_be_visible()


def test_wrong_blocks_and_changes_of_others_are_said_and_the_text_stays(scene: Rig, entered: Page) -> None:
    page = entered
    problem = page.get_by_role("alert")
    preview = page.get_by_role("region", name="Preview")
    for body, words in {
        "runs: [1]": "chart: metric is missing",
        "metric: loss\nrun: 1": "chart: there is no key 'run'; the keys are runs, metric, title",
        "runs: [loss]\nmetric: loss": "'loss' is not an experiment ID",
    }.items():
        fill_editor(page, "wrong", f"a\n\n```chart\n{body}\n```\n")
        expect(preview).to_contain_text(f"Line 3: {words}")
        page.get_by_role("button", name="Save").click()
        expect(problem).to_contain_text("line 3: ")
    fill_editor(page, "both", "# Mine")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("link", name="Edit").click()
    page.get_by_label("Markdown").fill("# Mine, changed")
    other = {"name": "both", "text": "# Theirs", "version": 1}
    assert scene.post("/v1/reports", other).status_code == 200
    page.get_by_role("button", name="Save").click()
    expect(problem).to_contain_text("the report both was changed meanwhile: it has version 2 now")
    expect(page.get_by_label("Markdown")).to_have_value("# Mine, changed")
    for address, words in {
        "/reports/gone": "there is no report gone",
        "/reports/paul.both": "there is no report paul.both",
        "/reports/<img src=x onerror=window.pwned=1>": "there is no report",
    }.items():
        show(page, address)
        expect(problem).to_contain_text(words)
    assert is_clean(page)


def test_hostile_markdown_runs_nothing_and_loads_nothing(scene: Rig, entered: Page, tmp_path: Path) -> None:
    page = entered
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "pixel" in request.url else None)
    fill_editor(page, "hostile", HOSTILE)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("link", name="Edit")).to_be_visible()
    expect(page.get_by_text("1 run of this part is not there, or not shared with you.")).to_be_visible()
    report = page.locator("article.report")
    expect(report).to_contain_text('<div onclick="window.pwned=1">x</div>')
    expect(report.locator("pre")).to_have_text(f"{EVIL}\n")
    assert report.locator("img, script, svg[onload], [onclick], iframe").count() == 0
    hrefs = {link.get_attribute("href") for link in report.get_by_role("link").all()}
    assert {href for href in hrefs if href and not href.startswith("/experiments/")} == {
        "https://example.org/",
        "http://127.0.0.1:1/pixel.png",
    }
    assert (is_clean(page), asked) == (True, [])
    assert riseml(scene, tmp_path, "report", "export", "hostile").code == 0
    opened = page.context.new_page()
    opened.on("request", lambda request: asked.append(request.url) if not request.url.startswith("file:") else None)
    opened.goto((tmp_path / "hostile.html").as_uri())
    expect(opened.locator("body")).to_contain_text(EVIL)
    assert (opened.evaluate("window.pwned"), opened.locator("img, script").count(), asked) == (None, 0, [])
    opened.close()


def test_an_exported_report_shows_all_its_parts_without_a_network(scene: Rig, entered: Page, tmp_path: Path) -> None:
    (tmp_path / "r.md").write_text(f"# Export\n\n```chart\nruns: [1, 2]\nmetric: loss\n```\n\n{BLOCKS}")
    assert riseml(scene, tmp_path, "report", "create", "export", "r.md").code == 0
    done = riseml(scene, tmp_path, "report", "export", "export", "page.html")
    assert done.out.startswith("Wrote page.html: "), done.err
    page = entered.context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url.partition(":")[0]))
    page.goto((tmp_path / "page.html").as_uri())
    expect(page.get_by_role("heading", name="Export")).to_be_visible()
    expect(page.locator("svg polyline")).to_have_count(2)
    expect(page.locator("table tbody tr")).to_have_count(2)
    expect(page.get_by_role("img", name="samples of 1, step 10")).to_have_js_property("naturalWidth", 8)
    assert set(asked) <= {"file", "data"}
    page.close()


def test_reports_can_be_used_by_everybody(scene: Rig, browser: Browser) -> None:
    """axe finds nothing in any view, in light and dark; nothing is wider than its window."""
    page = enter(browser, scene)
    text = f"# A\n\nText [b](https://example.org)\n\n> c\n\n| d |\n|---|\n| e |\n\n{BLOCKS}"
    assert scene.post("/v1/reports", {"name": "all", "text": text}).status_code == 200
    for address in ("/reports", "/reports/all", "/reports/all?edit=1"):
        show(page, address)
        if address != "/reports":
            page.locator(".media-row img").first.wait_for()
        assert find_barriers(page) == [], address
        for width in (1024, 820, 390):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (address, width)
        page.set_viewport_size({"width": 1280, "height": 800})
    page.keyboard.press("Escape")
    page.locator("h1").first.click()
    page.keyboard.press("g")
    page.keyboard.press("r")
    expect(page.get_by_role("heading", name="Reports")).to_be_visible()
    page.context.close()
