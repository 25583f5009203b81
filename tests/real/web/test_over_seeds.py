"""The points of a set over their seeds, on the page in Chromium."""

from __future__ import annotations

import json
from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.support.rig import BASE, Rig
from tests.support.web_scene import WAIT, enter, show

_RUN = 'printf \'riseml.report {"step": 1, "score": 0.%s%s}\\n\' {{point}} {{seed}}'

expect.set_options(timeout=WAIT)


def test_a_set_shows_its_points_with_their_statistics(tmp_path: Path, browser: Browser) -> None:
    train = {
        "image": BASE,
        "run": _RUN,
        "resources": {"cpus": 0.1, "mem": "64MiB"},
        "parameters": {"point": [1, 2]},
        "repeat": 3,
        "search": {"method": "grid", "metric": "score", "goal": "maximize"},
        "concurrency": 6,
    }
    with Rig(tmp_path / "home", None) as rig:
        rig.submit(json.dumps({"project": "toaster", "train": train}))
        assert (
            rig.wait_closed("1")["message"] == "6 of 6 finished, best 1.4 and 2 more seeds, mean score 0.22 (point=2)"
        )
        page = enter(browser, rig)
        show(page, "/experiments/1")
        rows = page.get_by_role("table", name="Over seeds").get_by_role("row")
        expect(rows).to_have_count(3)
        expect(rows.nth(1)).to_contain_text("1.4 and 2 more")
        expect(rows.nth(1)).to_contain_text("0.01")
        expect(page.get_by_role("region", name="Over seeds", exact=True)).to_contain_text(
            "The luckiest single run is 1.6 with 0.23."
        )
        page.context.close()
