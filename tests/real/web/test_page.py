"""Every view of the page in a real Chromium: what it shows, live, and what users do with it."""

from __future__ import annotations

import re
from urllib.parse import quote

from playwright.sync_api import Browser, Locator, Page, Route, expect

from tests.support.rig import GO, Rig, single
from tests.support.web_scene import WAIT, enter, find_barriers, go, intercept_first, show

VIEWS = (
    "/",
    "/table",
    "/experiments/1",
    "/experiments/1/log",
    "/experiments/5/config",
    "/experiments/6/explain",
    "/experiments/1/files?path=history.csv",
    "/?group=&column=id&column=latest&column=marks&filter=toaster",
    "/experiments/3",
    "/experiments/2",
    "/pool",
    "/compare?of=1&of=4",
)
EVIL = "<img src=x onerror=window.pwned=1><script>window.pwned=1</script>"
HOSTILE = f"""
echo '{EVIL}'; echo '{EVIL}' >&2
printf '\\033]0;title\\007\\033[31m{EVIL}\\033[0m\\n'
printf 'riseml.report {{"step": 1, "{EVIL}": 0.5}}\\n'
exit 3
"""

expect.set_options(timeout=WAIT)


def find_row(page: Page, name: str) -> Locator:
    return page.locator(f'tr[data-id="{name}"]')


def make_room(rig: Rig) -> None:
    """End the experiment that waits for nearly all cores: those after it in the queue wait, too."""
    rig.post("/v1/experiments/6/kill")
    rig.wait_closed("6")


def test_the_table_filters_sorts_and_unfolds(entered: Page, scene: Rig) -> None:
    page = entered
    show(page, "/")
    expect(page.locator("tr.row[data-id]")).to_have_count(6)
    page.keyboard.press("/")
    page.keyboard.type("state:finished lr<0.2")
    expect(page.locator("tr.row[data-id]")).to_have_count(2)  # 1, and 2 for its members
    assert "filter=state" in page.url, "the filter can be sent as an address"
    page.get_by_role("searchbox").fill("")
    page.get_by_role("button", name="Unfold 2").click()
    expect(find_row(page, "2.4")).to_be_visible()
    labels = {"name": "warm-up of 3 epochs", "add_tags": ["baseline", "paper", "new"], "starred": True}
    scene.post("/v1/experiments/2/annotation", labels)
    expect(find_row(page, "2").locator(".tag")).to_have_count(3)
    heights = page.locator("tr.row[data-id]").evaluate_all("rows => rows.map((row) => row.offsetHeight)")
    assert len(set(heights)) == 1, "the table of thousands of rows counts on rows of one height"
    scene.post("/v1/experiments/2/annotation", {"name": "", "remove_tags": labels["add_tags"], "starred": False})
    page.set_viewport_size({"width": 1280, "height": 400})
    assert page.evaluate("document.documentElement.scrollHeight") <= 400, "the table scrolls, not the page"
    page.set_viewport_size({"width": 1280, "height": 800})
    page.get_by_role("button", name="Fold 2").click()
    expect(find_row(page, "2.4")).to_have_count(0)
    page.get_by_role("button", name="ID").click()
    expect(page.locator("tr.row[data-id]").first).to_have_attribute("data-id", "1")
    page.get_by_role("button", name="ID").click()
    expect(find_row(page, "1")).to_contain_text("0.027")


def test_the_keyboard_is_enough(entered: Page) -> None:
    page = entered
    show(page, "/")
    expect(find_row(page, "6")).to_be_visible()
    page.get_by_role("region", name="Experiments").focus()
    for key in ("j", "j", "x", "j", "x"):
        page.keyboard.press(key)
    expect(page.get_by_role("toolbar")).to_contain_text("2 selected")
    page.get_by_role("link", name="Compare").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Comparison")).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("p")
    expect(page.get_by_role("heading", name="Pool")).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("next and previous row")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_each_view_shows_what_it_is_for(scene: Rig, entered: Page) -> None:
    page = entered
    show(page, "/experiments/4")
    expect(page.locator(".sentence")).to_contain_text("1 job runs on this-machine.")
    expect(page.get_by_role("img", name="loss, last 0.027")).to_be_visible()
    expect(page.get_by_role("img", name="Timeline")).to_be_visible()
    show(page, "/experiments/3")
    expect(page.get_by_role("region", name="Failure")).to_contain_text("pip install pandas")
    page.get_by_role("link", name="Configuration").click()
    expect(page.get_by_role("region", name="riseml.yml").first).to_contain_text("loading data")
    show(page, "/experiments/6/explain")
    expect(page.locator(".summary")).to_contain_text("held by")
    show(page, "/experiments/2")
    expect(page.get_by_role("table", name="Leaderboard").get_by_role("row")).to_have_count(13)
    expect(page.get_by_role("img", name="best score so far")).to_be_visible()
    expect(page.get_by_role("region", name="Parameter importance")).to_contain_text("over 12 trials")
    expect(page.get_by_role("region", name="Parameter importance").locator(".name").first).to_have_text("lr")
    expect(page.get_by_role("img", name="12 trials over lr, batch, best score")).to_be_visible()
    page.get_by_role("region", name="Parallel coordinates").focus()
    page.keyboard.press("ArrowDown")
    best = scene.experiment("2")["search"]["best"]
    expect(page.get_by_role("region", name="Parameters and metric")).to_contain_text(f"{best['id']}: lr ")
    page.get_by_role("slider", name="Show the best").fill("25")
    expect(page.locator(".trials polyline[visibility=visible]")).to_have_count(3)


def test_the_pool_shows_its_use_and_its_queue_and_users_drain_it(scene: Rig, entered: Page) -> None:
    page = entered
    show(page, "/pool")
    expect(page.get_by_role("table", name="Queue")).to_contain_text("held by 4, 5")
    expect(page.locator("meter").first).to_have_attribute("aria-label", re.compile("Cores: 0.5 of"))
    expect(page.get_by_role("img", name=re.compile(r"Cores: at most .* of \d"))).to_be_visible()
    page.get_by_role("button", name="Drain this-machine").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_contain_text("5 jobs run on")
    page.get_by_role("dialog").get_by_role("button", name="Drain").click()
    expect(page.get_by_role("region", name="Hosts")).to_contain_text("draining")
    page.get_by_role("button", name="Resume this-machine").click()
    expect(page.get_by_role("button", name="Drain this-machine")).to_be_visible()
    scene.wait("it takes jobs", lambda: scene.get("/v1/pool")["hosts"][0]["state"] == "up")


def press_and_redraw(page: Page, box: Locator) -> None:
    """Click while the table is drawn again between the press and the release of the button."""
    box.hover()
    page.mouse.down()
    page.get_by_role("searchbox").dispatch_event("input")
    page.mouse.up()
    expect(box).to_be_checked()


def test_the_metric_of_every_row_sorts_and_filters(entered: Page) -> None:
    page = entered
    rows = page.locator("tr.row[data-id]")
    show(page, "/")
    expect(rows).to_have_count(6)
    page.get_by_role("button", name="score", exact=True).click()
    expect(page.get_by_role("columnheader", name="score", exact=True)).to_have_attribute("aria-sort", "descending")
    expect(rows.first).to_have_attribute("data-id", "2")
    assert "sort=-score" in page.url, "it can be sent as an address"
    page.get_by_role("searchbox").fill("score>0.9")
    expect(rows).to_have_count(1)
    page.get_by_role("button", name="Unfold 2").click()
    expect(rows).to_have_count(2)
    page.get_by_role("searchbox").fill("accuracy>0.88 lr<0.2 TOAST -project:sweep")
    expect(rows).to_have_count(1)
    expect(rows.first).to_have_attribute("data-id", "1")
    page.get_by_role("searchbox").fill("")
    expect(rows.filter(has_text="12 experiments")).to_have_count(1)
    press_and_redraw(page, page.get_by_label("Select 1", exact=True))
    page.get_by_label("Select 6", exact=True).click(modifiers=["Shift"])
    expect(page.get_by_role("toolbar")).to_contain_text(re.compile(r"[2-9] selected|1\d selected"))
    page.get_by_role("button", name="Clear").click()


def list_cells(page: Page, column: str) -> list[str]:
    """Return what the lines of a table show in one column."""
    place = page.locator("table.chosen thead th .title").all_inner_texts().index(column)
    texts: list[str] = page.locator(f'table.chosen td[data-column="{place}"]').all_inner_texts()
    return texts


def test_the_leaderboard_has_the_values_of_the_command_line(scene: Rig, entered: Page) -> None:
    page = entered
    show(page, "/experiments/2")
    rows = page.get_by_role("table", name="Leaderboard").locator("tr[data-id]")
    expect(rows).to_have_count(12)
    ranked = scene.get("/v1/results", of="2")["experiments"]
    assert list_cells(page, "id") == [one["id"] for one in ranked]
    assert list_cells(page, "rank") == [str(one["rank"]) for one in ranked]
    assert list_cells(page, "score") == [f"{one['value']:.5g}" for one in ranked]
    lasts = {metric["name"]: metric["last"] for metric in ranked[0]["metrics"]}
    assert list_cells(page, "score.last")[0] == f"{lasts['score']:.5g}"
    page.get_by_role("button", name="lr", exact=True).click()
    expect(page.get_by_role("columnheader", name="lr")).to_have_attribute("aria-sort", "descending")
    expect(rows.first).to_have_attribute(
        "data-id", scene.get("/v1/results", of="2", sort="-lr")["experiments"][0]["id"]
    )
    page.get_by_role("button", name="batch", exact=True).click(modifiers=["Shift"])
    expect(page.get_by_role("columnheader", name="lr")).to_contain_text("↓1")
    assert "sort=-lr%2C-batch" in page.url


def test_users_choose_order_size_and_pin_columns(entered: Page) -> None:
    page = entered
    titles = page.locator("table.chosen thead th .title")
    show(page, "/table")
    expect(titles.first).to_have_text("id")
    page.get_by_role("button", name="Columns").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("searchbox").fill("LOSS.M")
    dialog.get_by_role("checkbox", name="loss.min").check()
    expect(dialog.get_by_role("checkbox")).to_have_count(2)
    dialog.get_by_role("button", name="Leave out accuracy").click()
    dialog.get_by_role("button", name="Up: loss.min").click()
    dialog.get_by_role("button", name="Pin state").click()
    dialog.get_by_role("button", name="Show").click()
    expect(titles.filter(has_text="accuracy")).to_have_count(0)
    usual = ["id", "state", "score", "loss", "latest", "lr", "batch", "project", "created", "time"]
    expect(titles).to_have_text([*usual, "loss.min", "host"])
    page.get_by_role("button", name="loss.min").press("Shift+ArrowLeft")
    expect(titles.nth(9)).to_have_text("loss.min")
    head = page.get_by_role("columnheader", name="lr")
    width = head.bounding_box()
    page.get_by_role("button", name="lr", exact=True).press("+")
    assert width is not None
    page.wait_for_function("([node, width]) => node.offsetWidth > width", arg=[head.element_handle(), width["width"]])
    assert "pinned=state" in page.url
    assert "width=lr" in page.url
    page.reload()
    expect(titles.nth(9)).to_have_text("loss.min")
    page.get_by_role("button", name="Columns").click()
    dialog.get_by_role("button", name="Columns that differ").click()
    dialog.get_by_role("button", name="Show").click()
    expect(titles).to_have_text(["id", "state", "lr", "batch", "loss", "accuracy", "score"])


def test_a_view_is_saved_and_opens_by_default(scene: Rig, entered: Page) -> None:
    page = entered
    titles = page.locator("table.chosen thead th .title")
    dialog = page.get_by_role("dialog")
    show(page, "/table?project=sweep&column=id&column=score.max&sort=-score&group=")
    expect(page.locator("tr[data-id]")).to_have_count(12)
    page.get_by_role("button", name="Views").click()
    dialog.get_by_role("button", name="Save this view").click()
    expect(dialog.get_by_role("alert")).to_have_text("Write a name for the view.")
    dialog.get_by_label("Name").fill("<b>best</b>")
    dialog.get_by_label("begins with it").check()
    dialog.get_by_role("button", name="Save this view").click()
    expect(page.get_by_text("Saved the view <b>best</b> of project sweep.")).to_be_visible()
    show(page, "/table?project=sweep")
    expect(titles).to_have_text(["id", "score.max"])
    assert "sort=-score" in page.url, "the address says what is shown, and can be sent"
    page.get_by_label("Project").select_option("toaster")
    expect(page.locator("tr[data-id]")).not_to_have_count(12)
    expect(titles.nth(1)).to_have_text("state")
    page.get_by_role("button", name="Views").click()
    expect(dialog).to_contain_text("None is saved so far.")
    page.keyboard.press("Escape")
    show(page, "/table?project=sweep")
    page.get_by_role("button", name="Views").click()
    page.get_by_role("button", name="Remove the view <b>best</b>").click()
    expect(dialog).to_contain_text("None is saved so far.")
    page.keyboard.press("Escape")
    for body, status in (({}, 422), ({"name": ""}, 400), ({"name": "x" * 65}, 400), ({"query": "x" * 8001}, 400)):
        request = {"project": "", "name": "n", "query": "", "default": False, **body} if body else {}
        assert scene.post("/v1/table/views", request).status_code == status


def test_the_table_groups_filters_and_is_saved_as_csv(scene: Rig, entered: Page) -> None:
    page = entered
    rows = page.locator("tr[data-id]")
    show(page, "/table")
    expect(rows).to_have_count(6)
    group = page.locator("tr.group")
    expect(group).to_contain_text("12 experiments")
    page.get_by_role("button", name="Unfold 2").click()
    expect(rows).to_have_count(18)
    page.get_by_label("Group by", exact=True).select_option("batch")
    expect(group).to_have_count(3)
    expect(page.get_by_role("status").filter(has_text="17 experiments")).to_contain_text("3 lines")
    page.get_by_label("Group by", exact=True).select_option("")
    expect(rows).to_have_count(17)
    find_row(page, "2.4").get_by_text("64", exact=True).click()
    field = page.get_by_role("searchbox", name="Filter the table")
    expect(field).to_have_value("batch=64")
    found = scene.get("/v1/results", project="sweep", where="batch=64", sort="-id")["experiments"]
    expect(rows).to_have_count(len(found))
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV").click()
    lines = download.value.path().read_text().splitlines()
    assert lines[0].startswith("id,state,score,loss,")
    assert [line.partition(",")[0] for line in lines[1:]] == [one["id"] for one in found]
    field.fill("statte=finished")
    expect(page.get_by_role("alert")).to_contain_text("did you mean 'state'")
    expect(rows).to_have_count(len(found))
    field.fill("state:finished lr<0.2")
    expect(page.get_by_role("alert")).to_have_count(0)
    page.get_by_label("Select all that the filter leaves").click()
    expect(page.get_by_role("toolbar")).to_contain_text("selected")
    field.fill("lr>5")
    page.get_by_role("button", name="Show all").click()
    expect(rows).to_have_count(17)
    page.get_by_role("button", name="Clear").click()


OVERLAPS = """() => {
  const heads = [...document.querySelectorAll('table.rows thead th')].filter((head) => head.offsetWidth);
  const texts = heads.map((head) => [head.querySelector('button, input')?.getBoundingClientRect(), head]);
  const isOver = ([box, head]) => box && box.right > head.getBoundingClientRect().right + 1;
  return texts.filter(isOver).map(([, head]) => head.innerText);
}"""


def test_narrow_windows_show_the_metric_and_no_overlap(entered: Page) -> None:
    page = entered
    for width in (1024, 820, 390):
        page.set_viewport_size({"width": width, "height": 760})
        for path, name, value in (
            ("/", "1", "0.883"),
            ("/table", "1", "0.027"),
            ("/experiments/2", "2.10", "0.96648"),
        ):
            show(page, path)
            cell = find_row(page, name).get_by_text(value).first
            expect(cell).to_be_visible()
            assert page.evaluate(OVERLAPS) == [], (width, path)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (width, path)
    page.set_viewport_size({"width": 1280, "height": 800})


def test_a_line_is_on_the_page_when_a_job_prints_it(scene: Rig, entered: Page) -> None:
    page = entered
    show(page, "/experiments/4/log")
    expect(page.get_by_text("40 lines", exact=True)).to_be_visible()
    expect(page.locator(".ansi-green").first).to_have_text("loss")
    page.set_viewport_size({"width": 1280, "height": 600})
    assert page.evaluate("document.documentElement.scrollHeight") <= 600, "the log scrolls, not the page"
    page.set_viewport_size({"width": 1280, "height": 800})
    scene.go_file("4").touch()
    expect(page.get_by_text("a new line")).to_be_visible()
    page.get_by_role("searchbox", name="Search the log").fill("EPOCH 3")
    expect(page.get_by_text("1 of 11")).to_be_visible()
    page.get_by_role("link", name="Line 7", exact=True).click()
    assert page.url.endswith("/experiments/4/log?line=6")
    show(page, "/experiments/4/log?line=6")
    expect(page.locator(".log-line[data-marked]")).to_contain_text("epoch 7")


def test_every_view_is_accessible(entered: Page) -> None:
    """axe finds nothing, in light and dark; and nothing is wider than a phone."""
    page = entered
    for path in VIEWS:
        show(page, path)
        expect(page.locator("main h1")).to_be_visible()
        expect(page.locator("main :is(table, .log-line, .chart, .summary)").first).to_be_attached()
        assert find_barriers(page) == [], path
        page.set_viewport_size({"width": 375, "height": 700})
        assert page.evaluate("document.documentElement.scrollWidth") <= 375, path
        page.set_viewport_size({"width": 1280, "height": 800})


def test_users_run_an_experiment_again_and_kill_it(scene: Rig, entered: Page) -> None:
    page = entered
    show(page, "/experiments/6")
    page.get_by_role("button", name="Kill").click()
    page.get_by_role("dialog").get_by_role("button", name="Kill").click()
    expect(page.locator(".sentence")).to_contain_text("killed")
    show(page, "/experiments/4")
    page.get_by_role("button", name="Rerun").click()
    page.get_by_role("dialog").get_by_role("button", name="Rerun").click()
    expect(page.get_by_role("heading", name="Experiment 7")).to_be_visible()
    expect(page.locator(".sentence")).to_contain_text("1 job runs on this-machine.")
    page.get_by_role("button", name="Kill").click()
    page.get_by_role("dialog").get_by_role("button", name="Kill").click()
    expect(page.locator(".sentence")).to_contain_text("killed")
    assert scene.wait_closed("7")["state"] == "KILLED"


def test_a_selected_text_stays_while_other_experiments_change(scene: Rig, entered: Page) -> None:
    page = entered
    make_room(scene)
    show(page, "/")
    select = "row => getSelection().selectAllChildren([...row.cells].find(cell => cell.textContent === 'toaster'))"
    expect(find_row(page, "1")).to_contain_text("0.027")
    find_row(page, "1").evaluate(select)
    name = scene.submit(single("exit 0"))["id"]
    expect(find_row(page, name)).to_contain_text("finished")
    assert page.evaluate("getSelection().toString()") == "toaster"


def test_the_list_says_what_runs_and_a_set_is_one_of_its_lines(scene: Rig, entered: Page) -> None:
    page = entered
    make_room(scene)
    show(page, "/")
    wait_for_go = 'until [ -e "$OUTPUT_DIR/go" ]; do sleep 0.1; done'
    name = scene.submit(single(f"echo first; {wait_for_go}; echo second; exec sleep 600"))["id"]
    expect(find_row(page, name)).to_contain_text("running")
    expect(find_row(page, name)).to_contain_text("first")
    scene.go_file(name).touch()
    expect(find_row(page, name)).to_contain_text("second")
    scene.post(f"/v1/experiments/{name}/kill")
    expect(find_row(page, name)).to_contain_text("killed")
    expect(find_row(page, "2")).to_contain_text("best 2.")
    page.get_by_label("Select 2", exact=True).click()
    page.get_by_role("button", name="Star").click()
    expect(page.get_by_role("dialog").locator(".command code")).to_have_text("riseml star 2")
    page.get_by_role("dialog").get_by_role("button", name="Star").click()
    expect(find_row(page, "2")).to_contain_text("★")
    assert scene.experiment("2")["starred"]
    page.get_by_role("button", name="Clear").click()
    show(page, "/?filter=star")
    expect(page.locator("tr.row[data-id]")).to_have_count(1)
    scene.post("/v1/experiments/2/annotation", {"starred": False})
    expect(page.locator(".empty")).to_contain_text("No experiment meets this filter.")
    page.get_by_role("button", name="Show all").click()
    expect(find_row(page, name)).to_be_visible()


def test_a_box_shows_whether_its_row_is_selected(entered: Page) -> None:
    """The browser turns a box off that was on; with the shift key the page selects its row again."""
    page = entered
    show(page, "/")
    box = page.get_by_role("checkbox", name="Select 3", exact=True)
    box.click()
    expect(box).to_be_checked()
    box.click(modifiers=["Shift"])
    expect(page.get_by_role("toolbar")).to_contain_text("1 selected")
    expect(box).to_be_checked()
    page.keyboard.press("x")
    expect(box).not_to_be_checked()


def test_an_end_while_the_page_reads_is_shown(scene: Rig, entered: Page) -> None:
    """The experiment ends when the server has answered the page, which has not got the answer yet."""
    page = entered
    make_room(scene)
    name = scene.submit(single(GO))["id"]
    scene.wait_state(name, "RUNNING")

    def answer_late(route: Route) -> None:
        answer = scene.experiment(name)
        assert answer["state"] == "RUNNING"
        scene.go_file(name).touch()
        scene.wait_closed(name)
        route.fulfill(json=answer)

    intercept_first(page, f"**/v1/experiments/{name}", answer_late)
    show(page, f"/experiments/{name}")
    expect(page.locator(".sentence")).to_contain_text("finished")


def test_an_end_before_the_page_hears_of_changes_is_shown(scene: Rig, browser: Browser) -> None:
    make_room(scene)
    name = scene.submit(single(GO))["id"]
    scene.wait_state(name, "RUNNING")
    page = enter(browser, scene)
    held: list[Route] = []
    intercept_first(page, "**/v1/changes", held.append)
    show(page, f"/experiments/{name}")
    expect(page.locator(".sentence")).to_contain_text("1 job runs on this-machine.")
    scene.go_file(name).touch()
    scene.wait_closed(name)
    held[0].continue_()
    expect(page.locator(".sentence")).to_contain_text("finished")
    page.context.close()


def test_what_jobs_and_files_say_is_text(scene: Rig, entered: Page) -> None:
    """A job and its riseml.yml put HTML into each field that they can fill."""
    page = entered
    make_room(scene)
    name = scene.submit(single(HOSTILE, parameters={"evil": EVIL}))["id"]
    scene.wait_closed(name)
    for path in (
        f"/experiments/{name}",
        f"/experiments/{name}/log",
        f"/experiments/{name}/config",
        "/?filter=<b>x</b>",
    ):
        show(page, path)
        shown = "<b>x</b>" if "filter" in path else "onerror"
        field = page.get_by_role("searchbox")
        expect(field).to_have_value(shown) if "filter" in path else expect(page.locator("main")).to_contain_text(shown)
        assert page.locator("main img, main script, main b").count() == 0
        assert page.evaluate("window.pwned") is None
    show(page, f"/compare?of=1&of={name}")
    expect(page.locator("main")).to_contain_text("onerror")
    assert page.evaluate("window.pwned") is None
    whole = scene.submit(single(HOSTILE, parameters={"evil": [EVIL, "<b>x</b>"]}))["id"]
    scene.wait_closed(whole)
    assert scene.post(f"/v1/experiments/{whole}/annotation", {"note": EVIL}).is_success
    for word in ({"name": EVIL}, {"add_tags": [EVIL]}, {"name": "<b>x</b>"}):
        assert scene.post(f"/v1/experiments/{whole}/annotation", word).status_code == 400
    shown = f"/table?column=id&column=note&column=evil&column={quote(EVIL)}&group=evil"
    for path in (f"/experiments/{whole}", shown, "/?sort=-evil"):
        show(page, path)
        expect(page.locator("main")).to_contain_text("onerror")
        assert page.locator("main :is(img, script, b, i)").count() == 0
        assert page.evaluate("window.pwned") is None
    scene.post(f"/v1/experiments/{whole}/annotation", {"note": ""})


def test_many_pages_of_one_browser_share_one_stream(scene: Rig, browser: Browser) -> None:
    """A browser opens six connections to a server at most."""
    first = enter(browser, scene)
    others = []
    for _ in range(7):
        others.append(first.context.new_page())
        go(others[-1], lambda: first.url)
    for page in (first, *others):
        expect(page.locator("#connection")).to_have_text("live")
    first.close()
    last = others[-1]
    expect(last.locator("#connection")).to_have_text("live")
    make_room(scene)
    name = scene.submit(single("true"))["id"]
    for page in (others[0], last):
        expect(find_row(page, name)).to_contain_text("finished")
    last.context.close()


def test_users_run_an_experiment_again_with_changes(scene: Rig, entered: Page) -> None:
    page = entered
    make_room(scene)
    dialog = page.get_by_role("dialog")
    show(page, "/experiments/1")
    page.get_by_role("button", name="Rerun").click()
    expect(dialog).to_contain_text("Nothing differs")
    for wrong in ("a\0b", "x" * 131_071, "x" * 140_000):
        dialog.get_by_label("lr").fill(wrong)
        expect(dialog.get_by_role("alert")).to_be_visible()
        dialog.get_by_label("lr").fill("0.1")
        expect(dialog.get_by_role("alert")).to_have_count(0)
    dialog.get_by_label("lr").fill("0.3 <b>")
    expect(dialog.get_by_role("alert")).to_have_count(0)
    expect(dialog.get_by_role("list", name="What differs")).to_have_text("lr: 0.1 → 0.3 <b>")
    expect(dialog.locator(".command code")).to_have_text("riseml rerun 1 -p 'lr=0.3 <b>'")
    dialog.get_by_label("lr").fill("0.3")
    expect(dialog).to_contain_text("The server accepts it")
    dialog.get_by_role("button", name="Rerun").click()
    expect(page.locator(".told")).to_contain_text("which repeats 1")
    name = page.locator(".told").inner_text().split()[1].rstrip(",")
    expect(page.get_by_role("heading", name=f"Experiment {name}")).to_be_visible()
    assert scene.wait_closed(name)["parameters"] == {"lr": "0.3"}
    show(page, "/experiments/3")
    page.get_by_role("button", name="Add to install and rerun").click()
    expect(dialog.get_by_role("list", name="What differs")).to_have_text("train.install: + pip install pandas")
    expect(dialog).to_contain_text("The server accepts it")
    expect(dialog.locator(".command code")).to_have_text(
        """riseml rerun 3 --set 'train.install=["pip install pandas"]'"""
    )
    dialog.get_by_role("button", name="Cancel").click()


def test_users_pause_stop_and_extend_a_set(scene: Rig, entered: Page) -> None:
    page = entered
    make_room(scene)
    dialog = page.get_by_role("dialog")
    name = scene.submit(single("exec sleep 600", parameters={"v": [1, 2, 3]}, concurrency=1))["id"]
    scene.wait_state(f"{name}.1", "RUNNING")
    show(page, f"/experiments/{name}")
    for button, option, told in (
        ("Pause", "--pause", "starts nothing further"),
        ("Resume", "--resume", "goes on"),
        ("Stop", "--stop", "starts nothing further"),
    ):
        page.get_by_role("button", name=button, exact=True).click()
        expect(dialog.locator(".command code")).to_have_text(f"riseml search {name} {option}")
        dialog.get_by_role("button", name=button).click()
        expect(page.locator(".told")).to_contain_text(told)
    scene.post(f"/v1/experiments/{name}/kill")
    scene.wait_closed(name)
    show(page, "/experiments/2")
    page.get_by_role("button", name="Add trials").click()
    for wrong in ("0", "1.5", "1001"):
        dialog.get_by_label("How many").fill(wrong)
        dialog.get_by_role("button", name="Add").click()
        expect(dialog.get_by_role("alert")).to_have_text("Write a whole number from 1 to 1000.")
    dialog.get_by_label("How many").fill("1")
    expect(dialog.locator(".command code")).to_have_text("riseml train 2 --trials 1")
    dialog.get_by_role("button", name="Add").click()
    expect(page.get_by_role("table", name="Leaderboard").locator("tr[data-id]")).to_have_count(13)
    scene.wait("the trial ends", lambda: scene.experiment("2")["closed"])


def test_users_delete_an_output_and_label_several(scene: Rig, entered: Page) -> None:
    page = entered
    make_room(scene)
    dialog = page.get_by_role("dialog")
    show(page, "/experiments/1")
    page.get_by_role("button", name="Delete output").click()
    expect(dialog.get_by_role("status")).to_contain_text("history.csv")
    expect(dialog.get_by_role("status")).to_contain_text(re.compile("^[0-9]+ files, .* KiB: "))
    dialog.get_by_role("button", name="Delete").click()
    expect(page.locator(".told")).to_contain_text(re.compile("Deleted [0-9]+ files, .* of 1"))
    assert scene.get("/v1/files", root="output", of="1")["entries"] == []
    show(page, "/table?group=&sort=id")
    for name in ("1", "3"):
        page.get_by_label(f"Select {name}", exact=True).click()
    page.get_by_role("button", name="Tag").click()
    for wrong, said in (("", "at least one"), ("a,b", "tag"), ("x" * 65, "tag")):
        dialog.get_by_label("Tags").fill(wrong)
        dialog.get_by_role("button", name="Tag").click()
        expect(dialog.get_by_role("alert")).to_contain_text(said)
    dialog.get_by_label("Tags").fill("paper old")
    dialog.get_by_role("button", name="Tag").click()
    expect(page.locator(".told")).to_contain_text("Tagged 2 experiments paper old.")
    assert [scene.experiment(name)["tags"] for name in ("1", "3")] == [["paper", "old"]] * 2
    page.get_by_role("button", name="Clear").click()


def test_failures_and_wrong_filters_say_what_is_wrong(scene: Rig, entered: Page) -> None:
    page = entered
    make_room(scene)
    broken = single("echo 'ModuleNotFoundError: No module named tqdm' >&2; exit 3", parameters={"v": [1, 2]})
    name = scene.submit(broken)["id"]
    scene.wait_closed(name)
    show(page, f"/experiments/{name}")
    expect(page.get_by_role("region", name="Failure")).to_contain_text("No module named tqdm")
    show(page, "/?filter=statte:foo")
    expect(page.get_by_role("alert")).to_contain_text("there is no column 'statte'")
    expect(page.get_by_role("alert")).to_contain_text("did you mean 'state'?")
    page.get_by_role("searchbox").fill("")
    expect(page.locator("tr.row[data-id]").first).to_be_visible()
    show(page, "/compare?of=1")
    expect(page.locator("main")).to_contain_text("Two experiments at least can be compared.")


def test_the_page_goes_on_after_the_server_was_killed(scene: Rig, entered: Page) -> None:
    page = entered
    make_room(scene)
    show(page, "/")
    expect(page.locator("#connection")).to_have_text("live")
    page.evaluate("window.stayed = true")
    scene.kill()
    expect(page.locator("#connection")).to_contain_text("does not answer")
    scene.start()
    expect(page.locator("#connection")).to_have_text("live")
    name = scene.submit(single("true"))["id"]
    expect(find_row(page, name)).to_contain_text("finished")
    assert page.evaluate("window.stayed") is True, "it was not loaded again"
