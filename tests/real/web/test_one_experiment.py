"""What the view of one experiment shows of its files, and that nothing of a file is more than text or a picture."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from riseml.analysis.stragglers import StragglerKind
from tests.support.rig import Rig, gang, single
from tests.support.web_scene import WAIT, enter, find_barriers, make_home, show

EVIL = "<img src=x onerror=window.pwned=1><script>window.pwned=1</script>"
SCRIPT = "<script>window.pwned = 1; parent.pwned = 1; top.pwned = 1</script>"
SIZE = 'width="40" height="40"'
DRAWING = f'<svg xmlns="http://www.w3.org/2000/svg" {SIZE} onload="window.pwned=1">{SCRIPT}<rect {SIZE}/></svg>'
PRINT = f"""
i=0; while [ $i -lt 300 ]; do i=$((i+1)); echo "epoch $i"
[ $((i % 100)) -ne 0 ] || {{ echo 'WARNING: {EVIL}'; echo 'ERROR: it broke'; }}
done
exec sleep 3600
"""
FULL_LINK = "2.ps.1 sends 118 MB/s, as much as a link of 1 Gbit/s carries"
BIDI = "gnp\u202egpj.txt"

expect.set_options(timeout=WAIT)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """A server whose experiment 1 runs, with files of all kinds in its OUTPUT_DIR."""
    with make_home(tmp_path_factory.mktemp("one")) as rig:
        try:
            rig.submit(single(PRINT))
            rig.wait_state("1", "RUNNING")
            write_files(Path(rig.experiment("1")["output"]))
            yield rig
        finally:
            rig.clean_up()


@pytest.fixture(scope="module")
def entered(scene: Rig, browser: Browser) -> Iterator[Page]:
    """A page that the server has let in, for the whole module."""
    page = enter(browser, scene)
    yield page
    page.context.close()


def write_files(folder: Path) -> None:
    """Write what a hostile job could."""
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "deep" / "er" / "notes.txt").write_text(f"hello\n\033[31m{EVIL}\033[0m\n")
    (folder / "metrics.csv").write_text(f'step,loss,"note, quoted"\n1,0.5,"{EVIL}"\n2,0.25,"say ""hi"""\n')
    (folder / "page.html").write_text(f"<!doctype html>{SCRIPT}<h1>not a page</h1>")
    (folder / "drawing.svg").write_text(DRAWING)
    (folder / "curve.png").write_bytes(make_png())
    (folder / "lie.png").write_text(SCRIPT)
    (folder / "model.bin").write_bytes(bytes(range(256)) * 8)
    (folder / "long.log").write_bytes(b"".join(b"line %06d\n" % number for number in range(60_000)))
    (folder / BIDI).write_text("a name that reads another way")
    (folder / "<img src=x onerror=window.pwned=1>").write_text("evil name")
    (folder / "link").symlink_to("/etc/passwd")


def make_png() -> bytes:
    """Return a picture of 8 x 8 pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)
    rows = b"".join(b"\0" + bytes((30, 90, 200)) * 8 for _ in range(8))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def add_full_link(route: Route) -> None:
    """Give the server's answer, with a warning about the ps more."""
    answer = route.fetch()
    warning = {"job": "2.ps.1", "text": FULL_LINK, "kind": StragglerKind.FULL_LINK.value}
    route.fulfill(response=answer, json={"stragglers": [*answer.json()["stragglers"], warning]})


def is_clean(page: Page) -> bool:
    """Return True when nothing that a job wrote has run, or has become an element."""
    return (
        page.evaluate("window.pwned") is None and page.locator("main script, main h1:text('not a page')").count() == 0
    )


def test_the_overview_shows_what_jobs_use_and_which_one_is_behind(scene: Rig, entered: Page) -> None:
    """Two jobs print fast, one slowly; the server compares what it keeps anyway, and the page says which it is. A ps
    at its line rate is marked as well.
    """
    page = entered
    fast, slow = "while :; do echo a line; sleep 0.1; done", "while :; do echo a line; sleep 3; done"
    scene.submit(gang({"master": fast, "worker.1": fast, "worker.2": slow}))
    scene.wait_state("2", "RUNNING")
    show(page, "/experiments/2")
    table = page.get_by_role("table", name="Resources")
    expect(table.get_by_role("img", name=re.compile("^Cores of worker.1: last "))).to_be_visible()
    expect(table.get_by_role("img", name=re.compile("^Memory of master: last "))).to_be_visible()
    expect(page.get_by_role("region", name="Jobs", exact=True)).to_contain_text("1 master, 2 worker, 1 ps")
    expect(table.get_by_role("row").filter(has_text="furthest behind")).to_contain_text("worker.2")
    expect(page.locator(".straggler")).to_contain_text("2.worker.2 is furthest behind: it prints")
    page.route("**/experiments/2/stragglers", add_full_link)  # the jobs of one host fill no link
    expect(table.get_by_role("row").filter(has_text="line rate")).to_contain_text("ps.1")
    expect(page.locator(".straggler").filter(has_text=FULL_LINK)).to_be_visible()
    page.unroute("**/experiments/2/stragglers")
    scene.post("/v1/experiments/2/kill")
    scene.wait_closed("2")


def test_the_log_of_a_level_leads_to_the_lines_around(entered: Page) -> None:
    page = entered
    show(page, "/experiments/1/log")
    expect(page.get_by_text("epoch 300", exact=True)).to_be_visible()
    page.get_by_role("combobox", name="Levels").select_option("warning")
    lines = page.locator(".log-line")
    expect(lines).to_have_count(6)
    assert page.url.endswith("/experiments/1/log?level=warning")
    expect(lines.filter(has_text=EVIL)).to_have_count(3)
    page.get_by_role("combobox", name="Levels").select_option("error")
    expect(lines).to_have_count(3)
    page.get_by_role("searchbox", name="Search the log").fill("broke")
    expect(page.get_by_text("1 of 3")).to_be_visible()
    lines.nth(1).get_by_role("link").click()
    expect(page.locator(".log-line[data-marked]")).to_contain_text("it broke")
    expect(page.get_by_text("epoch 201", exact=True)).to_be_attached()
    show(page, "/experiments/1/log?level=<img src=x onerror=window.pwned=1>")
    expect(page.get_by_text("epoch 300", exact=True)).to_be_visible()
    assert is_clean(page)


def test_files_are_shown_as_what_they_are_and_never_run(entered: Page) -> None:
    """Folders, text, tables, pictures; each with what a hostile job puts into names and contents."""
    page = entered
    show(page, "/experiments/1/files")
    listing = page.get_by_role("region", name="Files", exact=True)
    expect(listing.get_by_role("link", name="deep/")).to_be_visible()
    expect(listing).to_contain_text("<img src=x onerror=window.pwned=1>")
    expect(listing).to_contain_text("gnp\\u202egpj.txt")
    expect(listing).to_contain_text("link → /etc/passwd")
    assert listing.get_by_role("link", name="link").count() == 0, "a link is not followed"
    listing.get_by_role("link", name="deep/").click()
    listing.get_by_role("link", name="er/").click()
    listing.get_by_role("link", name="notes.txt").click()
    content = page.get_by_role("region", name="Content")
    expect(content).to_have_text(f"hello\n{EVIL}\n")
    assert page.url.endswith("/experiments/1/files?path=deep%2Fer%2Fnotes.txt")
    page.get_by_role("navigation", name="Folder").get_by_role("link", name="OUTPUT_DIR").click()
    listing.get_by_role("link", name="metrics.csv").click()
    cells = page.get_by_role("table", name="Content").get_by_role("row")
    expect(cells.nth(0)).to_contain_text("note, quoted")
    expect(cells.nth(1)).to_contain_text(EVIL)
    expect(cells.nth(2)).to_contain_text('say "hi"')
    listing.get_by_role("link", name="page.html").click()
    expect(content).to_contain_text("<h1>not a page</h1>")
    assert is_clean(page)


def test_pictures_run_nothing_and_long_files_are_cut(entered: Page) -> None:
    page = entered
    for name, width in (("curve.png", 8), ("drawing.svg", 40)):
        show(page, f"/experiments/1/files?path={name}")
        picture = page.get_by_role("img", name=f"Picture {name}")
        expect(picture).to_have_js_property("naturalWidth", width)
        assert str(picture.get_attribute("src")).startswith("data:image/"), "no address that could be opened as a page"
        assert is_clean(page)
    show(page, "/experiments/1/files?path=lie.png")
    expect(page.get_by_role("region", name="File", exact=True)).to_contain_text("This is no picture")
    show(page, "/experiments/1/files?path=model.bin")
    expect(page.get_by_role("region", name="File", exact=True)).to_contain_text("riseml cp 'output://1/model.bin' .")
    with page.expect_download() as saving:
        page.get_by_role("button", name="Download").click()
    assert saving.value.path().read_bytes() == bytes(range(256)) * 8
    assert saving.value.suggested_filename == "model.bin"
    show(page, "/experiments/1/files?path=long.log")
    content = page.get_by_role("region", name="Content")
    expect(content).to_contain_text("line 000000")
    expect(content).not_to_contain_text("line 059999")
    page.get_by_role("button", name="Show its end").click()
    expect(content).to_contain_text("line 059999")
    show(page, "/experiments/1/files?path=..%2F..%2Fserver.log")
    expect(page.get_by_role("alert")).to_be_visible()
    show(page, "/experiments/1/files?path=gone.txt")
    expect(page.get_by_role("alert")).to_contain_text("gone.txt")
    assert is_clean(page)


def test_a_shell_runs_in_the_page(entered: Page) -> None:
    """The terminal of xterm.js under the strict policy: typed text, colours, sizes, exit code, hostile output."""
    page = entered
    refused: list[str] = []
    page.on("console", lambda message: refused.append(message.text) if "Security Policy" in message.text else None)
    show(page, "/experiments/1/shell")
    page.get_by_role("button", name="Open a shell").click()
    expect(page.get_by_role("status").filter(has_text="Open in 1.train")).to_be_visible()
    rows = page.locator(".xterm-rows")
    page.keyboard.type("echo $((6 * 7))-$TERM; stty size | tr ' ' x\n")
    expect(rows).to_contain_text("42-xterm-256color")
    expect(rows).to_contain_text(re.compile(r"[1-9][0-9]x[1-9][0-9]"))
    page.keyboard.type(f"printf '\\033]0;title\\007\\033[31mred {EVIL}\\033[0m\\n'\n")
    expect(rows.locator(".xterm-fg-1").first).to_contain_text("red")
    page.keyboard.type("printf '\\033[38;2;1;200;30mexact\\033[0m\\n'\n")
    expect(rows.locator("span[style*='color']").first).to_have_text("exact")
    assert is_clean(page)
    assert "title" not in page.title()
    page.keyboard.press("F6")
    expect(page.locator(".shell :focus")).to_have_count(0)
    page.get_by_role("textbox", name="Terminal input").focus()
    page.keyboard.type("seq 1 60000 | tail -n 60000; exit 7\n")
    expect(page.get_by_role("status").filter(has_text="exit code 7")).to_be_visible()
    expect(rows).to_contain_text("60000")
    assert refused == []


def test_a_shell_whose_files_do_not_come_says_what_to_do(scene: Rig, browser: Browser) -> None:
    """The page was loaded from a server that has been upgraded since."""
    page = enter(browser, scene)
    page.route("**/vendor/xterm.mjs", lambda route: route.fulfill(status=404, body="The page has no such file.\n"))
    show(page, "/experiments/1/shell")
    page.get_by_role("button", name="Open a shell").click()
    expect(page.get_by_role("alert")).to_contain_text("load the page again")
    page.context.close()


def test_every_part_can_be_used_by_everybody(entered: Page) -> None:
    """axe finds nothing, in light and dark; and nothing is wider than a phone."""
    page = entered
    parts = {
        "log?level=error": ".log-line",
        "files": "table",
        "files?path=metrics.csv": ".cells",
        "files?path=curve.png": ".picture",
        "shell": ".xterm-rows",
    }
    for part, sign in parts.items():
        show(page, f"/experiments/1/{part}")
        if part == "shell":
            page.get_by_role("button", name="Open a shell").click()
        expect(page.locator(f"main {sign}").first).to_be_visible()
        assert find_barriers(page) == [], part
        page.set_viewport_size({"width": 375, "height": 700})
        assert page.evaluate("document.documentElement.scrollWidth") <= 375, part
        page.set_viewport_size({"width": 1280, "height": 800})
