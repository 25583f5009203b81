"""What users say about an experiment, on the page: labels, note and form."""

from __future__ import annotations

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
