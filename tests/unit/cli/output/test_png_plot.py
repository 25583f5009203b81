"""A chart as a PNG: an extra that may not be installed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer
from tests.unit.cli.result_rows import serve_plot


def test_png_says_what_it_needs(riseml: Riseml, fake_server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    serve_plot(fake_server)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_agg", None)
    refused = riseml("plot", "144", "--png", "a.png")
    assert refused.code == 2
    assert "pip install 'riseml[plot]'" in refused.err


def test_png_is_a_picture(riseml: Riseml, fake_server: FakeServer, folder: Path) -> None:
    pytest.importorskip("matplotlib")
    serve_plot(fake_server)
    assert riseml("plot", "144", "--png", "a.png").code == 0
    assert (folder / "a.png").read_bytes().startswith(b"\x89PNG")
