"""`media`: what an experiment's jobs have written, and its mistakes."""

from __future__ import annotations

import json

import pytest

from riseml import wire
from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer, make_experiment

ITEMS: list[wire.MediaItem] = [
    {"step": step, "path": f"val/samples/{step}.png", "size": 1000, "etag": "e"} for step in (100, 2000)
]
MEDIA: wire.MediaView = {
    "id": "4",
    "media": [{"name": "val/samples", "kind": "picture", "items": ITEMS}],
    "left_out": 1,
    "more": True,
}


def test_media_are_listed_by_name(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.answers["GET /experiments/4/media"] = (200, MEDIA)
    assert riseml("media", "4").out.splitlines() == [
        "NAME         KIND     FILES         STEPS   SIZE",
        "val/samples  picture      2  100 to 2,000  2,000",
        "",
        "`riseml cp output://4/media .` copies them; the page shows them",
        "1 file below media left out: the names are not NAME/STEP.png, or have another ending",
        "There are more: `riseml ls -r output://4/media` lists all",
    ]
    assert json.loads(riseml("media", "4", "--json").out) == MEDIA


def test_an_experiment_without_media_says_how_to_report_some(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.experiments["4"] = make_experiment()
    fake_server.answers["GET /experiments/4/media"] = (200, {"id": "4", "media": [], "left_out": 0, "more": False})
    assert "riseml.report_image(name, step, image)" in riseml("media", "4").out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("media", "4/x"), "'4/x' is not an experiment ID"),
        (("media", "4", "7"), "unexpected extra argument"),
        (("media", "99"), "there is no experiment 99"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(riseml: Riseml, words: tuple[str, ...], said: str) -> None:
    result = riseml(*words)
    assert result.code != 0
    assert said in result.err
