"""How an engine gets the base image of an environment, and what its refusal tells the user."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from riseml.base.errors import EngineError
from riseml.executors.base import BuildRequest, ImageMissing
from riseml.executors.docker.images import ensure_base
from riseml.executors.transports.engine_client import Engine
from riseml.model import Image
from tests.support.builds import make_build_request
from tests.unit.executors.docker.streaming_engine import StreamingEngine, serve_engine

PULL = "POST /images/create"
DIGEST = f"python@sha256:{'ab' * 32}"
IMAGE_ID = f"sha256:{'cd' * 32}"
_LOOKUP = 'Get "https://registry.example/v2/": dial tcp: lookup registry.example on 10.0.0.1:53: no such host'


@pytest.fixture
def site() -> Iterator[tuple[StreamingEngine, Engine]]:
    """An engine without images, and its client."""
    with serve_engine() as made:
        yield made


def ensure(client: Engine, order: BuildRequest) -> str:
    with client.api() as api:
        return ensure_base(api, order)


def test_an_image_that_is_there_is_not_fetched(site: tuple[StreamingEngine, Engine]) -> None:
    engine, client = site
    engine.images["python:3.11"] = {"Id": IMAGE_ID}
    assert ensure(client, make_build_request(Image("python:3.11"))) == "python:3.11"
    assert not any(route.startswith("POST") for route in engine.asked)


def test_a_tag_that_was_resolved_is_fetched_by_its_digest_and_gets_its_tag(
    site: tuple[StreamingEngine, Engine],
) -> None:
    engine, client = site
    engine.lines[PULL] = [
        {"id": "a1", "status": "Downloading", "progressDetail": {"current": 5, "total": 9}},
        {"id": "a1", "status": "Pull complete"},
    ]
    engine.brings[PULL] = [DIGEST]
    lines: list[str] = []
    assert ensure(client, make_build_request(Image("python:3.11", resolved=DIGEST), lines)) == DIGEST
    assert lines == [f"Fetching image {DIGEST}", "a1: Pull complete"]
    assert f"{PULL}?fromImage={DIGEST}" in engine.asked
    assert any(route.startswith(f"POST /images/{DIGEST}/tag?") for route in engine.asked)


def test_a_tag_of_the_host_is_not_moved_unless_the_user_asks_for_it(site: tuple[StreamingEngine, Engine]) -> None:
    engine, client = site
    engine.brings[PULL] = [DIGEST]
    engine.images["python:3.11"] = {"Id": IMAGE_ID}
    for refresh in (False, True):
        engine.images.pop(DIGEST, None)
        ensure(client, make_build_request(Image("python:3.11", resolved=DIGEST, refresh=refresh)))
        assert any("/tag?" in route for route in engine.asked) is refresh


@pytest.mark.parametrize(
    ("status", "line", "hint"),
    [
        (200, {"error": "manifest for python:9 not found"}, "check the spelling of the image and its tag"),
        (404, {"message": "pull access denied for python"}, "check the spelling of the image and its tag"),
        (500, {"message": "unauthorized: authentication required"}, "`riseml registry login docker.io -u USER`"),
        (500, {"message": _LOOKUP}, "the engine of the host does not reach the registry"),
        (200, {"error": "net/http: TLS handshake timeout"}, "the engine of the host does not reach the registry"),
    ],
    ids=[
        "in a successful answer",
        "as its answer",
        "without a credential",
        "a name that nothing resolves",
        "a registry that is silent",
    ],
)
def test_a_refusal_is_permanent_and_has_the_words_of_the_engine_and_a_hint_that_fits(
    site: tuple[StreamingEngine, Engine], status: int, line: dict[str, str], hint: str
) -> None:
    engine, client = site
    engine.statuses[PULL] = status
    engine.lines[PULL] = [line]
    with pytest.raises(ImageMissing, match=re.escape(next(iter(line.values())))) as raised:
        ensure(client, make_build_request(Image("python:9")))
    assert raised.value.permanent
    shown = str(raised.value.hint)
    assert shown.startswith(hint)
    assert ("riseml registry login docker.io" in shown) == ("denied" in str(line) or "auth" in str(line))


def test_a_fetch_that_brings_nothing_is_an_error(site: tuple[StreamingEngine, Engine]) -> None:
    _, client = site
    with pytest.raises(EngineError, match="was fetched, but the engine does not have it"):
        ensure(client, make_build_request(Image("python:3.11")))


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (Image("python:3.11", resolved=IMAGE_ID), "that image is gone"),
        (Image("riseml/environment:ab12"), "is not on the host"),
    ],
    ids=["an ID, which is in no registry", "a name of riseml's own"],
)
def test_what_no_registry_can_have_is_never_asked_for(
    site: tuple[StreamingEngine, Engine], image: Image, message: str
) -> None:
    engine, client = site
    with pytest.raises(ImageMissing, match=message):
        ensure(client, make_build_request(image))
    assert not any(route.startswith("POST") for route in engine.asked)


def test_a_cancelled_fetch_ends(site: tuple[StreamingEngine, Engine]) -> None:
    engine, client = site
    engine.lines[PULL] = [{"id": "a1", "status": "Pull complete"}]
    order = make_build_request(Image("python:3.11"))
    order.cancellation.ask()
    with pytest.raises(EngineError):
        ensure(client, order)
