"""Users of a team's server log in at Glewlwyd, a real provider: with a browser, and at a terminal."""

from __future__ import annotations

import io
import re
import shutil
import tempfile
import threading
from pathlib import Path

import httpx

from riseml.cli.context import CommandContext
from riseml.cli.main import execute
from riseml.cli.output.printer import Printer
from tests.support.glewlwyd import CLIENT, SECRET, Glewlwyd, open_glewlwyd
from tests.support.waiting import DEADLINE
from tests.team.team_server import Team, open_team, run_command

CONFIG = """\
allow: [process]
users:
  ids: {{mia: 2101, zoe: 2102}}
oidc:
  issuer: {issuer}
  client_id: {client}
  client_secret_file: {secret}
  scopes: [openid, groups]
  roles: {{lab: member, heads: admin}}
"""


def test_users_log_in_at_a_provider_with_a_browser_and_at_a_terminal(tmp_path: Path) -> None:
    home = Path(tempfile.mkdtemp(prefix="riseml-team-"))  # short: the path of a unix socket is
    secret = tmp_path / "secret"
    secret.write_text(SECRET)
    secret.chmod(0o600)
    try:
        with open_glewlwyd(tmp_path) as provider:
            more = CONFIG.format(issuer=provider.issuer, client=CLIENT, secret=secret)
            with open_team(home, more=more) as team:
                provider.add_client(f"{team.url}/login/return")
                for user, group in (("mia", "lab"), ("zoe", "heads")):
                    provider.add_user(user, group)
                _log_in_with_browser(team, provider)
                _log_in_at_terminal(team, provider, tmp_path)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _log_in_with_browser(team: Team, provider: Glewlwyd) -> None:
    with (
        provider.open_browser("zoe") as browser,
        httpx.Client(base_url=team.url, verify=team.make_tls_context(), timeout=DEADLINE) as page,
    ):
        asked = page.get("/login/provider?next=/pool").headers["location"]
        answer = browser.get(f"{asked}&g_continue").headers["location"]
        assert answer.startswith(f"{team.url}/login/return?"), answer
        entered = page.get(answer.removeprefix(team.url))
        assert entered.status_code == 303, entered.text
        assert entered.headers["location"].startswith("/pool#session=")
        secret = page.cookies["__Host-riseml"]
    with httpx.Client(base_url=team.url, verify=team.make_tls_context(), timeout=DEADLINE) as client:
        caller = client.get("/v1/whoami", headers={"Authorization": f"Bearer {secret}"}).json()
    assert (caller["user"], caller["role"]) == ("zoe", "admin")


def _log_in_at_terminal(team: Team, provider: Glewlwyd, folder: Path) -> None:
    out, err = io.StringIO(), io.StringIO()
    codes: list[str] = []

    def wait(seconds: float) -> None:
        if not codes:
            shown = re.search(r"type the code ([\w-]+)", err.getvalue())
            assert shown is not None
            codes.append(shown[1])
            with provider.open_browser("mia") as browser:
                browser.get(f"{provider.issuer}/device", params={"code": shown[1], "g_continue": ""})
        threading.Event().wait(seconds)

    printer = Printer(out, err, colour=False, err_colour=False, live=False)
    environ = {"RISEML_HOME": str(folder / "home")}
    context = CommandContext(printer, environ, folder, asks=True, wait=wait)
    assert execute(("login", team.url, "--fingerprint", team.fingerprint), context) == 0, err.getvalue()
    assert out.getvalue().startswith(f"Logged in to {team.url} as mia (member).\n")
    assert run_command(environ, folder, "status").code == 0
