"""The table of all experiments: its order, and the focus of users who have no mouse."""

from __future__ import annotations

from tests.support.javascript import run_page

TABLE = """
const { showExperiments } = await import("./experiments.js");
const names = ["run 10", "run 9", "run 100"];
const common = { jobs: [], metrics: [], parameters: {}, user: "paul", created_at: "2025-01-01T00:00:00Z" };
const views = names.map((project, at) => ({ ...common, id: String(at + 1), project, state: "FINISHED", type: "experiment", experiments: [] }));
views.push({ ...common, id: "4", project: "run 1", state: "RUNNING", type: "set", experiments: [{ ...views[0], id: "4.1" }] });
const answers = { "/experiments": { experiments: views }, "/experiments/2": views[1] };
serve((path) => answers[path] ?? { names: [] });
const feed = makeFeed();
const main = document.createElement("main");
document.body.append(main);
await showExperiments(main, { feed, signal: new AbortController().signal, parts: [] });
const find = (label) => main.querySelectorAll("button").find((one) => one.textContent.startsWith(label) || one.getAttribute("aria-label") === label);
"""  # noqa: E501  # a row of views each


def test_texts_are_sorted_with_one_collator_for_all_rows() -> None:
    """localeCompare takes seconds for 10,000 rows, at every change of one of them."""
    script = """
    String.prototype.localeCompare = () => { throw new Error("it makes a collator for each comparison"); };
    find("Project").click();
    find("Project").click();
    return main.querySelectorAll("tr").map((row) => row.getAttribute("data-id")).filter(Boolean);
    """
    assert run_page(TABLE + script) == ["4", "2", "1", "3"]


def test_the_focus_stays_on_a_head_that_sorts() -> None:
    script = """
    find("Age").focus();
    document.activeElement.click();
    return document.activeElement.textContent;
    """
    assert run_page(TABLE + script).startswith("Age")


def test_the_focus_stays_on_the_button_that_unfolds_a_set() -> None:
    script = """
    find("Unfold set 4").focus();
    document.activeElement.click();
    await settle();
    const rows = main.querySelectorAll("tr").map((row) => row.getAttribute("data-id"));
    return [document.activeElement.getAttribute("aria-label"), rows];
    """
    label, rows = run_page(TABLE + script)
    assert label == "Fold set 4"
    assert "4.1" in rows


def test_a_change_leaves_the_focus_on_the_actions_of_the_selection() -> None:
    script = """
    main.querySelectorAll("input").find((one) => one.getAttribute("aria-label") === "Select 1").click();
    const kill = find("Kill");
    kill.focus();
    feed.say({ changed: ["2"] });
    await settle();
    return [document.activeElement === kill, kill.isConnected];
    """
    assert run_page(TABLE + script) == [True, True]


PRESS = """
const press = (key, target = document.body, fields = {}) => {
  const event = Object.assign(new Event("keydown", { cancelable: true }), { key, ...fields });
  Object.defineProperty(event, "target", { value: target });
  document.dispatchEvent(event);
  return event.defaultPrevented;
};
const rowOf = () => document.activeElement.closest("tr")?.getAttribute("data-id");
"""


def test_the_keys_of_the_table_need_no_focus_in_it() -> None:
    script = """
    press("j");
    const first = rowOf();
    press("j", document.activeElement);
    press("ArrowDown", document.activeElement);
    return [first, rowOf()];
    """
    assert run_page(TABLE + PRESS + script) == ["4", "2"]


def test_the_keys_of_the_browser_and_of_inputs_stay_their_own() -> None:
    script = """
    const scroller = main.querySelector("div.scroller");
    const filter = main.querySelectorAll("input").find((one) => one.getAttribute("type") === "search");
    const kept = [press("j", scroller, { ctrlKey: true }), press("ArrowUp", scroller, { altKey: true })];
    return [...kept, press("j", filter), press("ArrowDown", filter), press("ArrowDown"), rowOf() ?? null];
    """
    assert run_page(TABLE + PRESS + script) == [False, False, False, False, False, None]


def test_the_duration_leaves_out_the_waits_between_attempts() -> None:
    script = """
    const { makeRunTime } = await import("./parts.js");
    const started_at = "2025-01-01T10:00:00Z";
    const show = (view) => makeRunTime({ started_at, ended_at: null, ...view }).textContent;
    return [
      show({ ended_at: "2025-01-01T11:00:00Z" }),
      show({ ended_at: "2025-01-01T11:00:00Z", waited: 3000.0, waits_since: null }),
      show({ waited: 0, waits_since: "2025-01-01T10:00:30Z" }),
      makeRunTime({ started_at: null, ended_at: null }),
    ];
    """
    assert run_page(TABLE + script) == ["1 h", "10 min", "30 s", ""]
