"""Environments that go from one engine to another, as a stream or through a registry."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from riseml.base.errors import EngineError
from riseml.executors.base import NotThere, Work, WorkReport
from riseml.executors.docker.image_transfer import EngineImages
from riseml.model import copy_name
from tests.unit.executors.docker.streaming_engine import StreamingEngine, serve_engine

REFERENCE = "riseml/environment:ab12"
COPY = copy_name(REFERENCE)
REPOSITORY = f"registry.lab:5000/team/{COPY.partition(':')[0].rpartition('/')[2]}"
PUSH = f"POST /images/{REPOSITORY}/push"
LOAD, PULL = "POST /images/load", "POST /images/create"
DIGEST = f"sha256:{'ab' * 32}"
SITE = tuple[StreamingEngine, EngineImages]


@pytest.fixture
def site() -> Iterator[SITE]:
    """An engine with one environment."""
    with serve_engine() as (engine, client):
        engine.images[REFERENCE] = {"Id": "1", "Size": 7}
        yield engine, EngineImages(client)


def test_an_environment_is_as_large_as_its_engine_says(site: SITE) -> None:
    _, images = site
    assert images.measure_image(REFERENCE) == 7
    assert images.measure_image("riseml/environment:none") is None


def test_an_environment_that_is_gone_can_be_built_again(site: SITE) -> None:
    _, images = site
    with pytest.raises(NotThere, match="is not there any more") as raised:
        list(images.export_image("riseml/environment:none"))
    assert not raised.value.permanent
    with pytest.raises(NotThere):
        images.publish_image("riseml/environment:none", "registry.lab:5000")


def test_a_stream_reaches_the_engine_whole(site: SITE) -> None:
    engine, images = site
    engine.lines[LOAD] = [{"stream": "Loaded image"}]
    engine.brings[LOAD] = ["riseml/environment:cd34"]
    images.import_image("riseml/environment:cd34", iter([b"first", b"second"]))
    assert b"firstsecond" in engine.bodies


@pytest.mark.parametrize(
    ("line", "message"),
    [({"error": "no space left on device"}, "could not be loaded: no space"), ({"stream": "x"}, "was sent, but")],
)
def test_an_image_that_was_not_loaded_is_an_error(site: SITE, line: dict[str, str], message: str) -> None:
    engine, images = site
    engine.lines[LOAD] = [line]
    with pytest.raises(EngineError, match=message):
        images.import_image("riseml/environment:cd34", iter([b"x"]))


def test_a_published_environment_has_a_name_that_never_moves(site: SITE) -> None:
    engine, images = site
    engine.lines[PUSH] = [
        {"id": "a1", "status": "Pushing", "progressDetail": {"current": 3, "total": 9}},
        {"aux": {"Digest": DIGEST}},
    ]
    reports: list[WorkReport] = []
    assert images.publish_image(REFERENCE, "registry.lab:5000/team/", reports.append) == f"{REPOSITORY}@{DIGEST}"
    assert reports == [WorkReport(Work.SEND, REFERENCE, 3, 9)]


@pytest.mark.parametrize(
    ("lines", "message"),
    [([{"error": "denied: no push access"}], "cannot be pushed: denied: no push access"), ([], "gave no digest")],
)
def test_a_push_that_failed_is_an_error_although_the_engine_answers_200(
    site: SITE, lines: list[dict[str, str]], message: str
) -> None:
    engine, images = site
    engine.lines[PUSH] = lines
    with pytest.raises(EngineError, match=message):
        images.publish_image(REFERENCE, "registry.lab:5000/team")


def test_a_fetched_environment_gets_the_name_of_a_copy(site: SITE) -> None:
    engine, images = site
    images.fetch_image(REFERENCE, f"{REPOSITORY}@{DIGEST}")
    repository, tag = COPY.split(":")
    assert any(f"repo={repository}" in route and f"tag={tag}" in route for route in engine.asked if "/tag?" in route)
    engine.lines[PULL] = [{"error": "unauthorized"}]
    with pytest.raises(EngineError, match="cannot be fetched: unauthorized"):
        images.fetch_image(REFERENCE, f"{REPOSITORY}@{DIGEST}")
