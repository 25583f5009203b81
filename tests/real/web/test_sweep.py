"""examples/sweep, watched on the page from its first trial to its end."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.real.frameworks.test_toaster import EXAMPLE, find_cache
from tests.support.rig import Rig
from tests.support.web_scene import WAIT, enter, show

SWEEP = EXAMPLE.parent / "sweep"
CHEAPER = {
    "  install: [pip install numpy]\n": "",  # the Python of the tests has it
    "run: python train_sweep.py": f"run: {sys.executable} train_sweep.py --epochs 4",
    "trials: 30": "trials: 5",
    "cpus: 0.5": "cpus: 0.2",
}

expect.set_options(timeout=WAIT)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    """A server whose jobs find the digits."""
    data = find_cache() / "data"
    subprocess.run([sys.executable, EXAMPLE / "get_data.py", data / "digits"], check=True)
    with Rig(tmp_path / "home", None, RISEML_DATA=str(data)) as made:
        yield made
        made.clean_up()


def test_the_sweep_is_watched_from_its_first_trial_to_its_end(rig: Rig, browser: Browser) -> None:
    config = (SWEEP / "riseml.yml").read_text()
    for text, other in CHEAPER.items():
        assert text in config
        config = config.replace(text, other)
    page = enter(browser, rig)
    expect(page.get_by_text("There is no experiment so far")).to_be_visible()
    page.evaluate("window.stayed = true")
    name = rig.submit(config, {"train_sweep.py": (SWEEP / "train_sweep.py").read_text()})["id"]
    expect(page.locator(f'tr[data-id="{name}"]')).to_contain_text("trial", timeout=WAIT)
    page.get_by_role("link", name=name, exact=True).click()
    expect(page.get_by_role("img", name=re.compile("^accuracy"))).to_be_visible()  # the first trial has reported
    ended = rig.wait_closed(name)
    assert (ended["state"], ended["search"]["made"]) == ("FINISHED", 5), ended["message"]
    expect(page.locator(".sentence")).to_contain_text(f"best {ended['search']['best']['id']} accuracy")
    expect(page.get_by_role("table", name="Leaderboard").get_by_role("row")).to_have_count(6)
    expect(page.get_by_role("img", name="5 trials over lr, units, batch, momentum, best accuracy")).to_be_visible()
    expect(page.get_by_role("region", name="Parameter importance")).to_contain_text(
        "5 of the 10 trials that this takes have a value."
    )
    stopped = ended["search"]["stopped"]
    early = page.get_by_role("region", name="Stopped early")
    if stopped:
        expect(early).to_contain_text(f"{stopped} of 5 experiments")
    else:
        expect(early).to_be_hidden()
    assert page.evaluate("window.stayed") is True, "it was never loaded again"
    show(page, f"/experiments/{ended['search']['best']['id']}/log")
    expect(page.get_by_text("epoch 1: test accuracy")).to_be_visible()
    page.context.close()
