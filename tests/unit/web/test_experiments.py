"""The table of all experiments: its cells, whose experiments it asks for, and what it reads again when jobs print."""

from __future__ import annotations

from tests.support.javascript import run_page

TABLE = """
const common = { group: "", count: 1, ended: 0, open: false, inside: false, user: "ann", team_project: null,
  may_change: true, state: "RUNNING", progress: null, latest: "", mixed: [] };
const columns = ["id", "state", "loss"];
const rows = ["2", "paul.1"].map((id) => ({ ...common, id, cells: [id, "RUNNING", 0.5] }));
const view = { objectives: [], total: 2, archived: 0, matched: 2, lines: 2, columns, available: [], rows, notes: [] };
const asked = [];
serve((path, query) => {
  if (path === "/table/views") return { views: [], projects: [] };
  if (path !== "/table") return { projects: [], user: "ann" };
  asked.push(String(query));
  const of = query.getAll("of");
  return of.length ? { ...view, rows: rows.filter(({ id }) => of.includes(id)).map((row) => ({ ...row, latest: "epoch 7", cells: [row.id, "RUNNING", 0.25] })) } : view;
});
const feed = makeFeed();
const main = document.createElement("main");
document.body.append(main);
const open = async (address) => {
  history.replaceState(null, "", address);
  const { showExperiments } = await import("./experiments.js");
  await showExperiments(main, { feed, signal: new AbortController().signal, parts: [] });
};
const listRows = () => main.querySelectorAll("tr").filter((row) => row.getAttribute("data-id")).map((row) => row.textContent);
"""  # noqa: E501  # a line of a table each


def test_the_table_asks_for_ones_own_experiments_and_takes_the_usual_columns() -> None:
    script = """
    await open("/?filter=state:running+lr<0.1+toaster");
    return [asked, main.querySelector("thead").textContent];
    """
    asked, heads = run_page(TABLE + script)
    assert len(asked) == 1, "one request until the first line is there"
    assert "where=state%3Arunning+and+lr%3C0.1" in asked[0]
    assert "word=toaster" in asked[0]
    assert "all_users" not in asked[0]
    assert "column=" not in asked[0]
    assert heads == "id\xa0↓stateloss"


def test_the_newest_experiments_are_shown_before_all() -> None:
    script = """
    view.total = 10000;
    await open("/");
    return asked.map((query) => new URLSearchParams(query).get("newest"));
    """
    assert run_page(TABLE + script) == ["60", None]


def test_what_prints_is_read_again_alone() -> None:
    """Ten thousand lines are not read because one job prints, and experiments of others are not in one's own table."""
    script = """
    await open("/");
    const before = listRows();
    feed.say({ changed: [], grown: ["2", "paul.1"] });
    await settle();
    feed.say({ changed: ["paul.1"], grown: [] });
    await settle();
    return [before, listRows(), asked.slice(1)];
    """
    before, after, asked = run_page(TABLE + script)
    assert before == ["2running0.5", "paul.1running0.5"]
    assert after == ["2running0.25", "paul.1running0.5"]
    assert len(asked) == 1
    assert "of=2" in asked[0]
    assert "of=paul.1" not in asked[0]


def test_cells_say_how_far_a_line_is_and_what_it_printed_last() -> None:
    script = """
    const { makeCell } = await import("./table_cells.js");
    const progress = { job: "train", done: 3, of: 10, unit: "epoch", fraction: 0.24, per_second: 1, remaining: 720, spread: null, rounds: 0 };
    const show = (line, name, value, group = []) => makeCell({ ...common, id: "2", ...line, cells: [value] }, name, 0, group)
      .filter(Boolean).map((part) => part.textContent ?? part).join("");
    const set = { id: "", group: '["4"]', count: 12, ended: 5, latest: "trial 6 of 12" };
    return [
      show({ progress }, "state", "RUNNING"),
      show({ progress, latest: "10%\\r\\u001b[32m24%\\u001b[0m <b>" }, "latest", null),
      show(set, "latest", null, ["set"]),
      show({ state: "FINISHED", ended: 1 }, "latest", null),
      show({}, "marks", "starred,archived"),
      show(set, "id", "2 values", ["set"]),
    ];
    """.replace("\\\\", "\\")  # noqa: E501  # a line of a table
    assert run_page(TABLE + script) == [
        "running 24 %",
        "epoch 3/10, about 12 min left · 24% <b>",
        "5 of 12 ended · trial 6 of 12",
        "",
        "★ archived",
        "▸4 12 experiments",
    ]


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
    assert run_page(script) == ["1 h", "10 min", "30 s", ""]
