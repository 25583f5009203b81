"""`riseml login` at the organisation's provider, from a terminal, against a server of a team."""

from __future__ import annotations

import io
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from riseml.cli.context import CommandContext
from riseml.cli.main import execute
from riseml.cli.output.printer import Printer
from riseml.client.contexts import read_contexts
from tests.support.device_provider import DeviceProvider, open_device_provider
from tests.team.team_server import ADMIN, Outcome, Team, open_team, run_command

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the provider, about its own library
CONFIG = """\
allow: [process]
users:
  ids: {{mia: 2101, paul: 2001}}
oidc:
  issuer: {issuer}
  client_id: riseml
  client_secret_file: {secret}
  roles: {{lab: member}}
"""


@pytest.fixture(scope="module")
def provider() -> Iterator[DeviceProvider]:
    with open_device_provider() as running:
        yield running


@pytest.fixture(scope="module")
def team_with_provider(provider: DeviceProvider) -> Iterator[Team]:
    home = Path(tempfile.mkdtemp(prefix="riseml-team-"))
    secret = home / "client-secret"
    secret.write_text("a secret of the client\n")
    secret.chmod(0o600)
    try:
        with open_team(home, more=CONFIG.format(issuer=provider.issuer, secret=secret)) as running:
            yield running
    finally:
        shutil.rmtree(home, ignore_errors=True)


def log_in(team: Team, folder: Path, act: Callable[[str], None]) -> Outcome:
    """Run `riseml login` at a terminal; the user acts with the code while the command waits the first time."""
    out, err = io.StringIO(), io.StringIO()
    codes: list[str] = []

    def wait(seconds: float) -> None:
        assert seconds >= 1
        shown = re.search(r"type the code (\w+)", err.getvalue())
        assert shown is not None
        if not codes:
            act(shown[1])
        codes.append(shown[1])
        threading.Event().wait(seconds)

    printer = Printer(out, err, colour=False, err_colour=False, live=False)
    environ = {"RISEML_HOME": str(folder / "home")}
    context = CommandContext(printer, environ, folder, asks=True, wait=wait)
    words = ("login", team.url, "--name", "team", "--fingerprint", team.fingerprint)
    code = execute(words, context)
    return Outcome(code, out.getvalue(), err.getvalue())


def test_a_user_logs_in_at_the_provider_from_a_terminal(
    team_with_provider: Team, provider: DeviceProvider, tmp_path: Path
) -> None:
    provider.say("s-mia", preferred_username="mia", groups=["lab"])
    ended = log_in(team_with_provider, tmp_path, lambda code: provider.confirm(code, "s-mia"))
    assert ended.out.startswith(f"Logged in to {team_with_provider.url} as mia (member).\n"), ended.err
    assert f"Open {provider.issuer}/device and type the code " in ended.err
    assert f"or open {provider.issuer}/device?code=" in ended.err
    secret = read_contexts(tmp_path / "home" / "config").find("team").key
    assert secret not in ended.out + ended.err
    environ = {"RISEML_HOME": str(tmp_path / "home")}
    assert run_command(environ, tmp_path, "whoami").out.startswith("User: mia\nRole: member\n")
    assert "command line" in run_command(environ, tmp_path, "session", "list").out
    assert run_command(environ, tmp_path, "status").code == 0


@pytest.mark.parametrize(
    ("act", "sentence"),
    [
        ("refuse", "this login was refused at the provider"),
        ("no-role", "'zoe' may not use this server: none of their groups has a role here"),
        ("other", "paul is another person here"),
    ],
)
def test_a_login_that_the_provider_or_the_server_refuses_keeps_nothing(
    team_with_provider: Team, provider: DeviceProvider, tmp_path: Path, act: str, sentence: str
) -> None:
    provider.say("no-role", preferred_username="zoe", groups=["guests"])
    provider.say("other", preferred_username="paul", groups=["lab"])
    ended = log_in(
        team_with_provider,
        tmp_path,
        provider.refuse if act == "refuse" else lambda code: provider.confirm(code, act),
    )
    assert ended.code == 4
    assert sentence in ended.err
    assert not (tmp_path / "home" / "config").exists()


def test_an_admin_links_a_user_to_a_person_of_the_provider(
    team_with_provider: Team, provider: DeviceProvider, tmp_path: Path
) -> None:
    for subject in ("-first;x", "second"):
        provider.say(subject, preferred_username="ann", groups=["lab"])
    admin = team_with_provider.log_in(ADMIN, tmp_path / "admin")
    kept = team_with_provider.log_in("ann", tmp_path / "ann")
    refused = log_in(team_with_provider, tmp_path, lambda code: provider.confirm(code, "-first;x"))
    assert "`riseml user link ann -- '-first;x'`" in refused.err
    assert run_command(kept, tmp_path, "user", "link", "ann", "second").code == 4
    linked = run_command(admin, tmp_path, "user", "link", "ann", "--", "-first;x")
    assert linked.out.startswith("User: ann\n"), linked.err
    entered = log_in(team_with_provider, tmp_path, lambda code: provider.confirm(code, "-first;x"))
    assert f"Logged in to {team_with_provider.url} as ann (member)." in entered.out, entered.err
    environ = {"RISEML_HOME": str(tmp_path / "home")}
    assert run_command(environ, tmp_path, "whoami").code == 0
    taken = run_command(admin, tmp_path, "user", "link", "paul", "--", "-first;x")
    assert taken.code == 4 and "this person of the provider is the user ann" in taken.err
    assert run_command(admin, tmp_path, "user", "link", "nobody", "x").code == 3
    assert run_command(admin, tmp_path, "user", "link", "ann", "second").code == 0
    assert run_command(environ, tmp_path, "whoami").code == 4, "the session of the person before has ended"
    assert run_command(kept, tmp_path, "whoami").code == 0, "a key stays"
