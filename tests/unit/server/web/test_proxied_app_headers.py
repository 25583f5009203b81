"""What passes between a browser and the program of a job, and what a hostile job cannot make a browser do."""

from __future__ import annotations

import pytest

from riseml.server.web.proxied_app_headers import choose_answered, choose_asked, find_own_place


def test_a_program_gets_neither_cookies_nor_names_of_the_page() -> None:
    kept = [(b"accept", b"*/*"), (b"content-type", b"x/y"), (b"x-tensorboard-feature-flags", b"{}")]
    dropped = [
        *(b"host", b"cookie", b"authorization", b"origin", b"referer", b"sec-fetch-site", b"sec-ch-ua", b"connection"),
        *(b"x-riseml-proof", b"x-forwarded-for", b"transfer-encoding", b"content-length", b"upgrade", b"expect"),
    ]
    assert choose_asked([*kept, *((name, b"x") for name in dropped)]) == kept


def test_a_browser_gets_only_headers_that_describe_the_content() -> None:
    kept = [(b"content-type", b"text/html"), (b"content-encoding", b"gzip"), (b"content-security-policy", b"x")]
    dropped = [
        *(b"set-cookie", b"location", b"refresh", b"link", b"clear-site-data", b"service-worker-allowed", b"nel"),
        *(b"strict-transport-security", b"alt-svc", b"report-to", b"reporting-endpoints", b"www-authenticate"),
        *(b"access-control-allow-origin", b"referrer-policy", b"x-frame-options", b"transfer-encoding", b"x-riseml-x"),
        *(b"cross-origin-opener-policy", b"permissions-policy", b"origin-agent-cluster", b"accept-ch"),
    ]
    assert choose_answered([*kept, *((name, b"x") for name in dropped)]) == kept
    assert choose_answered([(b"etag", b"x" * 9000)]) == []


@pytest.mark.parametrize(
    ("location", "leads"),
    [
        (b"/data/runs?a=b#c", "/data/runs?a=b#c"),
        (b"other", "/folder/other"),
        (b"../up", "/up"),
        (b"http://127.0.0.1:6006/x", "/x"),
        (b"http://127.0.0.1:6006", "/"),
        (b"http://127.0.0.1:60061/x", None),
        (b"http://127.0.0.1:8427/api/v1/server", None),
        (b"http://127.0.0.1:6006@evil.example/", None),
        (b"https://127.0.0.1:6006/", None),
        (b"//evil.example/", None),
        (b"http:////evil.example/", None),
        (b"/\\evil.example", None),
        (b"\\\\evil.example", None),
        (b"/\t/evil.example", None),
        (b"http://127.0.0.1:6006//evil.example/", None),
        (b"http://127.0.0.1:6006/\\evil.example/", None),
        (b"javascript:alert(1)", None),
        (b"data:text/html,x", None),
        (b"http://[", None),
        ("/\u2028".encode(), None),
        (b"/a\r\nSet-Cookie: x", None),
    ],
)
def test_a_redirect_stays_on_its_host(location: bytes, leads: str | None) -> None:
    assert find_own_place(location, "/folder/page", "127.0.0.1:6006") == leads
