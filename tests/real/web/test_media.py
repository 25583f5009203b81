"""Media on the page: a strip over steps, several experiments side by side, tables that are drawn, and nothing hostile
that runs.
"""

from __future__ import annotations

import io
import json
import wave
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.real.web.test_one_experiment import DRAWING, EVIL, SCRIPT, is_clean, make_png
from tests.support.rig import Rig, single
from tests.support.web_scene import WAIT, enter, find_barriers, make_home, show

NAMED = "<img src=x onerror=window.pwned=1>"
MATRIX = {"columns": ["actual", "cat", "dog"], "rows": [["cat", 9, 1], ["dog", 2, 8]], "view": "matrix"}
CURVE = {"columns": ["recall", "cat"], "rows": [[1, 0.25], [0, 1], [0.5, 0.75]], "view": "curve"}

expect.set_options(timeout=WAIT)


def make_sound() -> bytes:
    """Return a quarter of a second of silence."""
    stream = io.BytesIO()
    with wave.open(stream, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(bytes(4000))
    return stream.getvalue()


def write(folder: Path, name: str, content: bytes | str) -> None:
    path = folder / "media" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """A server with two experiments that run, and their media."""
    with make_home(tmp_path_factory.mktemp("media")) as rig:
        try:
            for number, steps in (("1", (0, 100, 250)), ("2", (0, 200))):
                rig.submit(single("exec sleep 3600"))
                rig.wait_state(number, "RUNNING")
                folder = Path(rig.experiment(number)["output"])
                for step in steps:
                    write(folder, f"val/samples/{step}.png", make_png())
            folder = Path(rig.experiment("1")["output"])
            write(folder, "confusion/5.json", json.dumps(MATRIX))
            write(folder, "pr/5.json", json.dumps(CURVE))
            write(folder, "table/5.csv", f'name,value\nb,2\n"{EVIL}",10\na,1\n')
            write(folder, "sound/5.wav", make_sound())
            write(folder, f"{NAMED}/1.svg", DRAWING)
            write(folder, f"{NAMED}/1.html", SCRIPT)
            write(folder, "lie/1.png", SCRIPT)
            write(folder, "broken/1.json", "{")
            write(folder, "final.png", b"")
            yield rig
        finally:
            rig.clean_up()


@pytest.fixture(scope="module")
def entered(scene: Rig, browser: Browser) -> Iterator[Page]:
    page = enter(browser, scene)
    yield page
    page.context.close()


def test_a_slider_and_a_strip_go_over_the_steps(scene: Rig, entered: Page) -> None:
    page = entered
    show(page, "/experiments/1/media")
    panel = page.get_by_role("region", name="Media val/samples, picture")
    expect(panel).to_contain_text("step 250 (3 of 3)")
    expect(panel.get_by_role("img", name="val/samples of 1, step 250").first).to_have_js_property("naturalWidth", 8)
    slider = panel.get_by_role("slider", name="Step of val/samples")
    slider.press("Home")
    expect(panel).to_contain_text("step 0 (1 of 3)")
    expect(panel.locator("figure img")).to_have_attribute("alt", "val/samples of 1, step 0")
    expect(slider).to_have_attribute("aria-valuetext", "step 0")
    panel.get_by_role("button", name="Step 100").click()
    expect(panel).to_contain_text("step 100 (2 of 3)")
    expect(panel.get_by_role("button", name="Step 100")).to_have_attribute("aria-pressed", "true")
    write(Path(scene.experiment("1")["output"]), "val/samples/300.png", make_png())
    page.get_by_role("button", name="Read again").click()
    expect(panel).to_contain_text("step 100 (2 of 4)")  # what the user looks at stays
    expect(page.get_by_role("status").filter(has_text="1 file below media/ left out")).to_be_visible()
    assert is_clean(page)


def test_reported_tables_are_sorted_shaded_and_drawn(entered: Page) -> None:
    page = entered
    show(page, "/experiments/1/media")
    matrix = page.get_by_role("region", name="Media confusion, table")
    expect(matrix.locator("td[data-shade='9']")).to_have_text("9")
    expect(matrix.locator("td[data-shade='1']")).to_have_text("1")
    matrix.get_by_role("combobox", name="View of confusion of 1, step 5").select_option("table")
    expect(matrix.locator("td[data-shade]")).to_have_count(0)
    table = page.get_by_role("region", name="Media table, table")
    first = table.locator("tbody tr:first-child")
    table.get_by_role("button", name="Sort by value").click()
    expect(first).to_contain_text(EVIL)
    expect(table.get_by_role("columnheader").nth(1)).to_have_attribute("aria-sort", "descending")
    table.get_by_role("button", name="Sort by value").click()
    expect(first).to_contain_text("a")
    chart = page.get_by_role("region", name="Media pr, table").get_by_role("region", name="Metric pr of 1, step 5")
    chart.locator("canvas").scroll_into_view_if_needed()
    expect(chart.locator(".u-over")).to_be_visible()
    chart.get_by_text("more", exact=True).click()
    chart.get_by_role("button", name="Table of pr of 1, step 5").click()
    rows = chart.get_by_role("table").get_by_role("row")
    expect(rows).to_have_count(4)
    expect(rows.nth(1)).to_contain_text("0")  # in the order of recall, not of the file
    expect(rows.nth(3)).to_contain_text("0.25")
    expect(page.get_by_role("region", name="Media broken, table")).to_contain_text("{")
    assert is_clean(page)


def test_experiments_are_side_by_side_in_a_comparison(entered: Page) -> None:
    page = entered
    show(page, "/compare?of=1&of=2")
    panel = page.get_by_role("region", name="Media val/samples, picture")
    figures = panel.locator("figure")
    expect(figures).to_have_count(2)
    slider = panel.get_by_role("slider", name="Step of val/samples")
    slider.press("Home")
    slider.press("ArrowRight")
    expect(panel).to_contain_text("step 100 (2 of")
    expect(figures.nth(0).locator("img")).to_have_attribute("alt", "val/samples of 1, step 100")
    expect(figures.nth(1)).to_contain_text("2, step 0")  # what it had last before the step
    assert is_clean(page)


def test_hostile_media_run_nothing_and_sound_plays(entered: Page) -> None:
    page = entered
    refused: list[str] = []
    page.on("console", lambda message: refused.append(message.text) if "Security Policy" in message.text else None)
    show(page, "/experiments/1/media")
    picture = page.get_by_role("region", name=f"Media {NAMED}, picture").get_by_role("img")
    expect(picture).to_have_js_property("naturalWidth", 40)
    assert str(picture.get_attribute("src")).startswith("data:image/svg+xml;"), (
        "no address that is a page of the server"
    )
    text = page.get_by_role("region", name=f"Media {NAMED}, text")
    expect(text.locator("pre")).to_have_text(SCRIPT)
    expect(page.get_by_role("region", name="Media lie, picture")).to_contain_text("This is no picture")
    sound = page.get_by_role("region", name="Media sound, sound").locator("audio")
    expect(sound).to_have_js_property("duration", 0.25)
    answer = page.evaluate(
        """async () => {
        const { getResponse } = await import([...document.scripts].at(-1).src.replace("boot.js", "api.js"));
        const query = { path: "<img src=x onerror=window.pwned=1>/1.svg" };
        const { headers } = await getResponse("/experiments/1/media/content", query);
        return ["content-type", "x-content-type-options", "content-security-policy"].map((name) => headers.get(name));
        }"""
    )
    assert answer[:2] == ["text/plain; charset=utf-8", "nosniff"]
    assert "default-src 'none'; sandbox" in answer[2], "beside the policy of the page"
    assert page.request.get(f"{page.url}/../../../api/v1/experiments/1/media").status == 401, "a cookie is not enough"
    assert (is_clean(page), refused) == (True, [])


def test_media_can_be_used_by_everybody(scene: Rig, browser: Browser) -> None:
    """axe finds nothing, in light and dark; nothing is wider than a phone; wrong addresses say what is wrong."""
    page = enter(browser, scene)
    for address, sign in {"/experiments/1/media": ".thumb img", "/compare?of=1&of=2": ".media-row img"}.items():
        show(page, address)
        page.locator(sign).first.wait_for()
        assert find_barriers(page) == [], address
        for width in (1024, 820, 390):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (address, width)
        page.set_viewport_size({"width": 1280, "height": 800})
    show(page, "/experiments/99/media")
    expect(page.get_by_role("alert")).to_contain_text("No experiment 99")
    page.context.close()
