"""Where the commands of a cluster run, and what the end of one on a login node means."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from riseml.base.errors import Unreachable
from riseml.executors.slurm.command_site import LoginNode, ThisMachine, find_site
from riseml.executors.transports.ssh_command import Destination
from riseml.executors.transports.tunnel_phases import TunnelTiming
from riseml.spec.pool.types import SlurmSpec
from riseml.spec.scalars.engine_url import parse_engine_url

LOGIN = Destination("slurm", parse_engine_url("ssh://ann@login.lab:2222"), Path("pins"))


@pytest.fixture
def login(tmp_path: Path) -> LoginNode:
    """A login node to which nothing has connected yet."""
    return LoginNode(LOGIN, tmp_path, TunnelTiming())


@pytest.mark.parametrize(
    ("settings", "kind"),
    [(SlurmSpec("/shared"), ThisMachine), (SlurmSpec("/shared", login="ssh://login.lab"), LoginNode)],
)
def test_commands_run_on_this_machine_unless_the_pool_names_a_login_node(
    settings: SlurmSpec, kind: type, tmp_path: Path
) -> None:
    site = find_site(settings, tmp_path)
    assert isinstance(site, kind)
    site.close()


def test_this_machine_runs_a_command_as_it_is_and_every_end_is_its_own() -> None:
    site = ThisMachine()
    assert site.wrap(["squeue", "--me"]) == ["squeue", "--me"]
    assert site.explain_end("squeue", 255) is None
    with socket.create_server(("127.0.0.1", 0)) as server, site.connect("127.0.0.1", server.getsockname()[1]) as door:
        assert door.getpeername() == server.getsockname()


@pytest.mark.parametrize("code", [0, 1, 126])
def test_an_exit_code_of_the_command_itself_needs_no_explanation(login: LoginNode, code: int) -> None:
    assert login.explain_end("squeue", code) is None


def test_a_login_node_without_slurm_shows_how_to_try_it(login: LoginNode) -> None:
    error = login.explain_end("squeue", 127)
    assert isinstance(error, Unreachable)
    assert error.message == "squeue is not found on login.lab"
    assert "`ssh -p 2222 ann@login.lab squeue --version` must work" in str(error.hint)


def test_a_broken_connection_is_no_answer_of_the_command(login: LoginNode) -> None:
    error = login.explain_end("squeue", 255)
    assert isinstance(error, Unreachable)
    assert error.message.startswith("no answer of squeue from login.lab: the connection broke")
