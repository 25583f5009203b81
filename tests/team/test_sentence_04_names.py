"""An unknown Host gets 421; no CORS; a foreign Origin 403."""

from __future__ import annotations

from collections.abc import Mapping

import httpx
import pytest

from tests.support.waiting import DEADLINE
from tests.team.team_server import Team


def ask(team: Team, method: str, headers: Mapping[str, str]) -> httpx.Response:
    """Return an answer to a request of an admin."""
    own = {"Authorization": f"Bearer {team.keys['alice']}"}
    with httpx.Client(verify=team.make_tls_context(), timeout=DEADLINE, trust_env=False) as client:
        return client.request(method, f"{team.url}/v1/server", headers={**own, **headers})


@pytest.mark.parametrize("host", ["evil.example.org", "localhost.evil.example.org", "gpu1:8443", "127.0.0.2"])
def test_an_unknown_host_gets_421(team: Team, host: str) -> None:
    assert ask(team, "GET", {"Host": host}).status_code == 421


@pytest.mark.parametrize("origin", ["https://evil.example.org", "null", "http://localhost", "https://localhost"])
def test_a_foreign_origin_gets_403(team: Team, origin: str) -> None:
    for method in ("GET", "POST", "OPTIONS"):
        assert ask(team, method, {"Origin": origin}).status_code == 403


def test_no_answer_lets_a_foreign_page_read_it(team: Team) -> None:
    asked = {"Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "authorization"}
    answers = [
        ask(team, "GET", {}),
        ask(team, "OPTIONS", asked),
        ask(team, "OPTIONS", {**asked, "Origin": "https://evil.example.org"}),
        ask(team, "GET", {"Origin": team.url}),
        ask(team, "GET", {"Host": "evil.example.org"}),
    ]
    assert [answer.status_code for answer in (answers[0], answers[3])] == [200, 200]
    assert not any(name.lower().startswith("access-control") for answer in answers for name in answer.headers)
