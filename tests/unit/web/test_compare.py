"""The comparison of experiments, some of which run."""

from __future__ import annotations

from tests.support.javascript import run_page

COMPARISON = """
const { showComparison } = await import("./compare.js");
location = new URL("/compare?of=4&of=7", location);
const nothing = { parameters: [], metrics: [], config: [], environment: [], code: [] };
const states = { 4: "FINISHED", 7: "RUNNING" };
const counts = { 4: 1, 7: 1 };
const asked = [];
const bucket = { mean: 0.5, min: 0.5, max: 0.5, last_step: 1, first_at: "", last_at: "" };
serve((path) => {
  const id = path.split("/")[2];
  if (path.endsWith("/history")) asked.push(id);
  if (path.endsWith("/history")) return { buckets: Array(counts[id]).fill(bucket) };
  if (path.endsWith("/media")) return { media: [], left_out: 0, more: false };
  if (path.endsWith("/metrics")) return { experiments: [{ metrics: [{ name: "loss", count: counts[id] }] }] };
  return { ...nothing, experiments: ["4", "7"].map((id) => ({ id, project: "toaster", state: states[id] })) };
});
const feed = makeFeed();
const main = new FakeElement("main");
await showComparison(main, { feed, signal: new AbortController().signal, parts: ["compare"] });
"""


def test_a_comparison_shows_ends_and_further_values() -> None:
    script = """
    const panel = main.querySelector("section.panel");
    const first = asked.splice(0);
    states[7] = "FINISHED";
    counts[7] = 2;
    feed.say({ changed: ["7"] });
    await settle();
    const shown = main.querySelectorAll("span.state").map((one) => one.textContent);
    return [first, asked, shown, panel === main.querySelector("section.panel")];
    """
    assert run_page(COMPARISON + script) == [["4", "7"], ["7"], ["finished", "finished"], True]


def test_other_experiments_do_not_concern_it() -> None:
    script = """
    states[7] = "FINISHED";
    feed.say({ changed: ["5"] });
    await settle();
    return main.querySelectorAll("span.state").map((one) => one.textContent);
    """
    assert run_page(COMPARISON + script) == ["finished", "running"]


def test_values_that_could_not_be_read_are_shown_when_the_server_answers() -> None:
    """The curve of one experiment comes, that of the other one does not."""
    script = """
    globalThis.setTimeout = (task) => setImmediate(task); // tries again at once
    const answer = globalThis.fetch;
    const isLost = (url) => url.pathname === "/api/v1/experiments/7/metrics/history";
    globalThis.fetch = (url) => (isLost(url) ? Promise.reject(new TypeError("the network has changed")) : answer(url));
    Object.assign(counts, { 4: 3, 7: 2 });
    feed.say({ grown: ["4", "7"] });
    for (let turns = 0; turns < 5; turns += 1) await settle();
    globalThis.fetch = answer;
    feed.pulse();
    for (let turns = 0; turns < 5; turns += 1) await settle();
    return main.querySelectorAll("button[data-points]").map((one) => Number(one.getAttribute("data-points")));
    """
    assert run_page(COMPARISON + script) == [3, 2]


def test_a_curve_that_has_come_is_shown_when_the_other_one_comes_later() -> None:
    script = """
    globalThis.setTimeout = (task) => setImmediate(task);
    const answer = globalThis.fetch;
    const isLost = (url) => url.pathname.endsWith("/7/metrics");
    globalThis.fetch = (url) => (isLost(url) ? Promise.reject(new TypeError("the network has changed")) : answer(url));
    counts[4] = 3;
    feed.say({ grown: ["4"] });
    for (let turns = 0; turns < 5; turns += 1) await settle();
    globalThis.fetch = answer;
    feed.pulse();
    for (let turns = 0; turns < 5; turns += 1) await settle();
    return main.querySelectorAll("button[data-points]").map((one) => Number(one.getAttribute("data-points")));
    """
    assert run_page(COMPARISON + script) == [3, 1]
