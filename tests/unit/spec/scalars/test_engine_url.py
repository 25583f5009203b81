"""URLs of Docker Engines."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riseml.spec.scalars.engine_url import EngineUrl, Scheme, parse_engine_url
from riseml.spec.scalars.texts import BadText


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("unix:///run/docker.sock", EngineUrl(Scheme.UNIX, socket="/run/docker.sock")),
        ("ssh://gpu1", EngineUrl(Scheme.SSH, "gpu1", socket="/var/run/docker.sock")),
        ("SSH://me@GPU-Box:22", EngineUrl(Scheme.SSH, "GPU-Box", 22, "me", "/var/run/docker.sock")),
        ("tcp://GPU-Box:2376", EngineUrl(Scheme.TCP, "gpu-box", 2376)),
        ("ssh://me@gpu1/", EngineUrl(Scheme.SSH, "gpu1", None, "me", "/var/run/docker.sock")),
        ("ssh://me@gpu1:22/a.sock", EngineUrl(Scheme.SSH, "gpu1", 22, "me", "/a.sock")),
        ("tcp://[::1]:2376", EngineUrl(Scheme.TCP, "::1", 2376)),
    ],
)
def test_urls_are_read_and_written(text: str, url: EngineUrl) -> None:
    assert parse_engine_url(text) == url
    assert parse_engine_url(str(url)) == url


@given(st.text(alphabet="tcpsshunix:/@[]-.a1\\%?# \n", max_size=30).map(lambda text: text) | st.text(max_size=30))
@settings(deadline=None, max_examples=200)
def test_no_url_becomes_an_option_or_a_second_word(text: str) -> None:
    """The parts of a URL become arguments of ssh."""
    for scheme in ("", "ssh://", "tcp://", "unix://"):
        try:
            url = parse_engine_url(scheme + text)
        except BadText:
            continue
        assert parse_engine_url(str(url)) == url
        assert not {" ", "\n", "\t"} & set(str(url))
        assert not url.host.startswith("-")
        assert not (url.user or "").startswith("-")
