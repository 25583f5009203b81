"""How far an experiment is, on the page and in the title of its tab."""

from __future__ import annotations

from tests.support.javascript import run_page


def test_the_bar_and_the_title_say_how_far_it_is() -> None:
    script = """
    const { describeBriefly, makeProgress, showInTitle } = await import("./progress.js");
    const progress = { job: "master", done: 3, of: 10, unit: "epoch", fraction: 0.249, remaining: 712, rounds: 0 };
    const round = { ...progress, unit: "%", remaining: null, rounds: 2 };
    document.title = "4 · riseml";
    showInTitle({ progress });
    showInTitle({ progress: { ...progress, fraction: 0.5 } });
    const title = document.title;
    showInTitle({ progress: null });
    const shown = [progress, round].map((one) => makeProgress({ progress: one }).textContent.trim());
    const rates = [{ unit: "step", per_second: 3.4 }, { unit: "img", per_second: 0.5 }];
    const jobs = [{ name: "ps.1", rates: [{ unit: "step", per_second: 9 }] }, { name: "master", rates }];
    const views = [{ progress, jobs }, { progress: null, jobs }];
    const fast = views.map((view) => makeProgress(view).textContent.trim());
    return [...shown, describeBriefly(progress), title, document.title, makeProgress({ progress: null }), ...fast];
    """
    assert run_page(script) == [
        "epoch 3/10, 24 %, about 12 min left",
        "24 % of round 3",
        "24 %, about 12 min",
        "50 % · 4 · riseml",
        "4 · riseml",
        None,
        "epoch 3/10, 24 %, about 12 min left, 3.4 steps/s, 30 img/min",
        "9 steps/s",
    ]


def test_a_diagnosis_is_shown_unless_a_remark_says_it() -> None:
    script = """
    const { makeRemarks } = await import("./progress.js");
    const diagnosis = { sentence: "worker.2 left the loop", certainty: "likely", time: "2026-08-31T07:23:46Z" };
    const remark = { job: null, text: "no sign of progress for 6 m: worker.2 left the loop", since: null };
    const shown = [{ diagnosis }, { diagnosis, remarks: [remark] }, { diagnosis: null, remarks: [] }];
    const age = /, \\d+ \\S+( \\d+ \\S+)? ago$/;
    return shown.map((view) => makeRemarks({ id: "4", ...view })?.textContent.replace(age, "") ?? null);
    """
    assert run_page(script) == [
        "Diagnosis (likely): worker.2 left the loop",
        "no sign of progress for 6 m: worker.2 left the loop",
        None,
    ]
