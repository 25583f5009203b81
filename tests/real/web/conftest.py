"""One server and one browser for all tests of the page."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.support.rig import Rig
from tests.support.web_scene import enter, fill_server, make_home, open_browser


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """The server of `fill_server`."""
    with make_home(tmp_path_factory.mktemp("web")) as rig:
        try:
            fill_server(rig)
            yield rig
        finally:
            rig.clean_up()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A Chromium."""
    with open_browser() as made:
        yield made


@pytest.fixture(scope="module")
def entered(scene: Rig, browser: Browser) -> Iterator[Page]:
    """A page that the server has let in, for the whole module."""
    page = enter(browser, scene)
    yield page
    page.context.close()
