"""The Pareto front of a search with two objectives, on the page."""

from __future__ import annotations

import json
import re
from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.support.rig import BASE, Rig
from tests.support.web_scene import WAIT, enter, show

expect.set_options(timeout=WAIT)


def test_the_page_shows_the_front_of_a_search_and_names_it(tmp_path: Path, browser: Browser) -> None:
    train = {
        "image": BASE,
        "run": """printf 'riseml.report {"quality": %s, "latency": %s}\\n' {{x}} $(({{x}} * {{y}}))""",
        "resources": {"cpus": 0.1, "mem": "64MiB"},
        "parameters": {"x": [1, 2, 3], "y": [1, 2]},
        "search": {"method": "grid", "metrics": {"quality": "maximize", "latency": "minimize"}},
        "concurrency": 3,
    }
    with Rig(tmp_path / "home", None) as rig:
        rig.submit(json.dumps({"project": "front", "train": train}))
        assert rig.wait_closed("1")["search"]["front"] == ["1.1", "1.3", "1.5"]
        page = enter(browser, rig)
        show(page, "/experiments/1")
        panel = page.get_by_role("region", name="Pareto front")
        expect(panel).to_contain_text("1.1, 1.3, 1.5: no other trial beats these")
        label = "3 of 6 trials are on the front of quality and latency"
        expect(panel.get_by_role("img", name=label)).to_be_visible()
        expect(panel.locator("circle")).to_have_count(6)
        expect(panel.locator("circle.first")).to_have_count(3)
        board = page.get_by_role("table", name="Leaderboard")
        ranks = board.get_by_role("row", name=re.compile(r"^Select 1\.\d 1 1\."))
        expect(ranks).to_have_count(3)
        box = panel.locator("svg").bounding_box()
        assert box is not None
        for text in panel.locator("svg text").all():
            place = text.bounding_box()
            assert place is not None
            assert box["x"] <= place["x"]
            assert place["x"] + place["width"] <= box["x"] + box["width"] + 1
            assert place["y"] >= box["y"] - 1
        page.context.close()
