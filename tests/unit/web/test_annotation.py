"""What users say about an experiment, on the page: labels, note, form, filter, and archived experiments."""

from __future__ import annotations

import json

import pytest

from tests.support.javascript import run_page

VIEW = """
const view = {
  id: "1", project: "toaster", state: "FINISHED", type: "experiment", reason: "COMPLETED", user: "paul", jobs: [],
  experiments: [], metrics: [], parameters: {}, created_at: "2025-01-01T00:00:00Z", closed: true,
  name: "lr warmup", tags: ["baseline", "lr"],
  note: "<b>why</b>\\nbecause", starred: true, archived: false,
};
"""


def test_labels_and_the_note_are_text() -> None:
    script = """
    const { makeLabels, makeNote } = await import("./annotation.js");
    const nothing = { ...view, name: "", tags: [], note: "", starred: false };
    const note = makeNote(view);
    const none = [makeLabels(nothing), makeNote(nothing)];
    return [makeLabels(view).textContent, note.textContent, note.children.length, ...none];
    """
    assert run_page(VIEW + script) == ["★lr warmupbaselinelr", "<b>why</b>\nbecause", 0, None, None]


def test_the_form_sends_what_the_user_has_changed() -> None:
    script = """
    const { findChange } = await import("./annotation.js");
    return [
      findChange(view, "lr warmup", " lr  best best", view.note),
      findChange(view, " ", "baseline lr", "other"),
      findChange({ ...view, note: "a\\r\\nb" }, "lr warmup", "baseline lr", "a\\nb"),
    ];
    """
    assert run_page(VIEW + script) == [
        {"add_tags": ["best"], "remove_tags": ["baseline"]},
        {"name": "", "note": "other", "add_tags": [], "remove_tags": []},
        {"add_tags": [], "remove_tags": []},
    ]


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("tag:baseline", True),
        ("tag:base", False),
        ("-tag:lr", False),
        ("name:warm star", True),
        ("starred", True),
        ("-star", False),
        ("archived", False),
        ("warmup", True),
        ("baseline project:toaster", True),
    ],
)
def test_the_filter_knows_what_users_say(text: str, *, matches: bool) -> None:
    script = f"""
    const {{ parseFilter, showsArchived }} = await import("./filter.js");
    const row = {{ id: "1", view, metrics: [], lasts: new Map(), isMember: false }};
    return [parseFilter({json.dumps(text)})(row), showsArchived({json.dumps(text)})];
    """
    assert run_page(VIEW + script) == [matches, text == "archived"]


def test_the_table_leaves_archived_experiments_out_that_have_ended() -> None:
    script = """
    const { showExperiments } = await import("./experiments.js");
    const views = [view, { ...view, id: "2", archived: true }, { ...view, id: "3", archived: true, state: "RUNNING" }];
    serve((path) => path === "/experiments" ? { experiments: views } : { names: [] });
    const main = document.createElement("main");
    document.body.append(main);
    await showExperiments(main, { feed: makeFeed(), signal: new AbortController().signal, parts: [] });
    const list = () => main.querySelectorAll("tr").map((row) => row.getAttribute("data-id")).filter(Boolean);
    const before = list();
    const input = main.querySelectorAll("input").find((one) => one.getAttribute("id") === "filter");
    input.value = "archived";
    input.dispatchEvent(new Event("input"));
    await settle();
    return [before, list()];
    """
    assert run_page(VIEW + script) == [["3", "1"], ["3", "2"]]
