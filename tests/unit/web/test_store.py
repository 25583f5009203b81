"""The list of all experiments that the web page keeps: no change is lost, whatever is read meanwhile."""

from __future__ import annotations

from tests.support.javascript import run_page

LIST = """
const { ExperimentList } = await import("./store.js");
const states = new Map([[1, "FINISHED"], [2, "RUNNING"]]);
const show = (number) => ({ id: String(number), state: states.get(number), experiments: [], jobs: [], metrics: [] });
const page = (query) => [...states.keys()].filter((one) => one < (Number(query.get("before")) || 99)).sort().reverse();
const feed = makeFeed();
const list = new ExperimentList(feed);
const signal = new AbortController().signal;
const read = () => Object.fromEntries([...list.views].map(([number, view]) => [number, view.state]));
let isDown = false;
let afterPage = () => {};
serve(async (path, query) => {
  if (isDown) return undefined;
  const addMetrics = (id) => ({ id, metrics: [{ name: "loss" }] });
  if (path === "/results") return { experiments: query.getAll("of").map(addMetrics) };
  if (path !== "/experiments") return show(Number(path.split("/")[2]));
  const [number] = page(query);
  const found = { experiments: number ? [show(number)] : [] };
  await afterPage(number);
  return found;
});
"""


def test_what_changes_while_the_list_is_read_is_in_it() -> None:
    """The page of the newest experiments is read first: then one of them ends, and another one is submitted."""
    change = """
    afterPage = async (number) => {
      if (number !== 2) return;
      states.set(2, "FINISHED").set(3, "PENDING");
      feed.say({ changed: ["2", "3"] });
      await settle();
    };
    await list.start(signal);
    await settle();
    return read();
    """
    assert run_page(LIST + change) == {"1": "FINISHED", "2": "FINISHED", "3": "PENDING"}


def test_an_older_reading_of_the_list_does_not_replace_a_newer_one() -> None:
    change = """
    let isFirst = true;
    afterPage = async (number) => {
      if (number !== 2 || !isFirst) return;
      isFirst = false;
      states.set(2, "FINISHED");
      feed.say({ reset: true });
      await settle();
      await settle();
    };
    await list.start(signal);
    await settle();
    return read();
    """
    assert run_page(LIST + change) == {"1": "FINISHED", "2": "FINISHED"}


def test_what_could_not_be_read_is_read_when_the_server_says_something_again() -> None:
    change = """
    await list.start(signal);
    isDown = true;
    states.set(2, "FINISHED");
    feed.say({ changed: ["2"] });
    list.want(["1"]);
    await new Promise((resolve) => (list.fetchMetrics().catch(resolve)));
    await settle();
    isDown = false;
    feed.pulse();
    await settle();
    const known = read();
    await list.fetchMetrics();
    return [known, list.metrics.get("1")];
    """
    assert run_page(LIST + change) == [{"1": "FINISHED", "2": "FINISHED"}, [{"name": "loss"}]]


def test_a_list_that_could_not_be_read_is_read_when_the_server_says_something_again() -> None:
    change = """
    isDown = true;
    const refusal = await list.start(signal).catch((error) => error.message);
    isDown = false;
    feed.pulse();
    await settle();
    return [refusal, read()];
    """
    assert run_page(LIST + change) == ["The server answered 500.", {"1": "FINISHED", "2": "RUNNING"}]


def test_a_filter_whose_values_could_not_be_read_gets_them_when_the_server_says_something_again() -> None:
    change = """
    await list.start(signal);
    isDown = true;
    list.follow(["loss"]);
    await settle();
    serve((path) => (path === "/metrics/names" ? { names: ["loss"] } : { metric: "loss", values: { 1: 0.5 } }));
    feed.pulse();
    await settle();
    return list.lasts.get("loss")?.get("1") ?? null;
    """
    assert run_page(LIST + change) == 0.5


def test_many_changes_are_read_without_all_experiments_and_however_old_they_are() -> None:
    """An old experiment ends among 20,000, and 30 others at its side."""
    change = """
    let sent = 0;
    serve((path, query) => {
      const [limit, before] = ["limit", "before"].map((name) => Number(query.get(name)));
      const last = Math.min(20_000, (before || 20_001) - 1);
      const experiments = Array.from({ length: Math.min(limit, last) }, (_, at) => ({ id: String(last - at), state: "FINISHED" }));
      sent += experiments.length;
      return { experiments };
    });
    list.signal = signal;
    await list.readChanged(Array.from({ length: 30 }, (_, at) => String(3000 + 20 * at)));
    return [sent, list.views.size, ["3000", "3580"].every((id) => list.views.has(id))];
    """  # noqa: E501  # one answer
    assert run_page(LIST + change) == [581, 581, True]


TEAM = """
const { ExperimentList, numberOf, topOf } = await import("./store.js");
const projects = new Map([["7", ""], ["paul.3", "vision"], ["ann.2", "words"], ["paul.1", "vision"]]);
const make = (id) => ({ id, team_project: projects.get(id) || null, experiments: [], jobs: [], metrics: [] });
const asked = [];
serve((path, query) => {
  asked.push(path + "?" + query);
  if (path !== "/experiments") return projects.has(path.slice(13)) ? make(path.slice(13)) : null;
  const ids = [...projects.keys()];
  const wanted = query.get("team_project") ?? "";
  const older = ids.slice(ids.indexOf(query.get("older_than")) + 1);
  const own = Number(query.get("before")) ? [] : ["7"];
  const all = query.get("all_users") ? older.filter((id) => !wanted || projects.get(id) === wanted) : own;
  return { experiments: all.slice(0, 2).reverse().map(make) };
});
const feed = makeFeed();
const signal = new AbortController().signal;
const makeList = async (query, project = "") => {
  const list = new ExperimentList(feed, { query, project });
  await list.start(signal);
  await settle();
  return list;
};
const read = (list) => [...list.views.keys()];
"""


def test_a_list_has_ones_own_those_of_a_project_or_all_in_pages() -> None:
    change = """
    const lists = [await makeList(""), await makeList("all"), await makeList("project:vision", "vision")];
    const first = lists.map(read);
    await lists[0].choose({ query: "all", project: "" });
    return [first, read(lists[0]).length, asked.filter((one) => one.includes("older_than")).length];
    """  # two further pages of all, one of the project, two of the second choice
    own, every, project = ["7"], ["paul.3", "7", "paul.1", "ann.2"], ["paul.1", "paul.3"]
    assert run_page(TEAM + change) == [[own, every, project], 4, 5]


def test_changes_of_others_reach_the_list_that_shows_them_and_no_other() -> None:
    change = """
    const lists = [await makeList(""), await makeList("all"), await makeList("project:vision", "vision")];
    projects.set("paul.8", "vision").set("ann.9", "words");
    projects.delete("paul.1");
    feed.say({ changed: ["paul.8", "ann.9.3", "paul.1"] });
    await settle();
    await settle();
    return [...lists.map((list) => read(list).sort()), topOf("ann.9.3"), topOf("9.3"), numberOf("ann.9.3")];
    """
    own, project = ["7"], ["paul.3", "paul.8"]
    every = ["7", "ann.2", "ann.9", "paul.3", "paul.8"]
    assert run_page(TEAM + change) == [own, every, project, "ann.9", "9", 9]
