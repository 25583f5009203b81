"""With 1,000 slow clients `GET /v1/server` answers within 1 s, also over a new connection."""

from __future__ import annotations

import subprocess
import sys
import time

import httpx

from tests.team.slow_clients import OF_EACH_KIND
from tests.team.team_server import Team

QUESTIONS = 20
DEADLINE = 1.0  # seconds, of the sentence


def ask(team: Team) -> list[float]:
    """Return how long each question took whose connection was a new one."""
    headers = {"Authorization": f"Bearer {team.keys['paul']}"}
    context = team.make_tls_context()
    took = []
    for _ in range(QUESTIONS):
        began = time.monotonic()
        with httpx.Client(verify=context, timeout=DEADLINE, trust_env=False) as client:
            client.get(f"{team.url}/v1/server", headers=headers).raise_for_status()
        took.append(time.monotonic() - began)
    return took


def test_a_thousand_slow_clients_delay_nobody(team: Team) -> None:
    words = (str(team.port), str(team.home / "authority" / "authority.pem"), team.keys["vera"], team.keys["ann"])
    command = [sys.executable, "-m", "tests.team.slow_clients", *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as clients:
        assert clients.stdout is not None and clients.stdout.readline() == "open\n"
        took = ask(team)
        kept, _ = clients.communicate()
    assert int(kept) == 4 * OF_EACH_KIND  # all were there meanwhile
    assert max(took) < DEADLINE
