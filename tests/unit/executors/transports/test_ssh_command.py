"""The command lines of ssh: no host, path or word of a command becomes an option of it, or a line of a shell."""

from __future__ import annotations

import shlex
from itertools import pairwise
from pathlib import Path

import pytest

from riseml.base.errors import UsageError
from riseml.base.names import HostName
from riseml.executors.transports.ssh_command import (
    Destination,
    build_port_command,
    build_session_command,
    build_shared_command,
    build_tunnel_command,
    find_destination,
    show_options,
)
from riseml.spec.pool.types import HostSpec
from riseml.spec.scalars.engine_url import parse_engine_url

PLAIN = Destination("near", parse_engine_url("ssh://gpu1"), Path("/home/ann/.riseml/known_hosts"))
FAR = Destination("far", parse_engine_url("ssh://ann@gpu1.lab:2222"), Path("/pins"), Path("/keys/id"))


def read_options(command: list[str]) -> dict[str, str]:
    """Return the options that follow `-o`."""
    return dict(word.split("=", 1) for before, word in pairwise(command) if before == "-o")


def test_a_tunnel_leads_to_the_socket_of_the_engine_and_prints_a_line() -> None:
    command = build_tunnel_command(FAR, Path("/t/far.sock"), "READY", {"ConnectTimeout": 10})
    assert command[command.index("-L") + 1] == "/t/far.sock:/var/run/docker.sock"
    options = read_options(command)
    assert (options["LocalCommand"], options["ConnectTimeout"]) == ("echo READY", "10")
    assert (options["StrictHostKeyChecking"], options["BatchMode"]) == ("yes", "yes")
    assert (options["UserKnownHostsFile"], options["GlobalKnownHostsFile"]) == ('"/pins"', "/dev/null")
    assert (options["IdentityFile"], options["IdentitiesOnly"]) == ('"/keys/id"', "yes")
    assert command[-6:] == ["-p", "2222", "-l", "ann", "--", "gpu1.lab"]


def test_a_shared_connection_is_made_once_and_never_by_a_session() -> None:
    shared = read_options(build_shared_command(PLAIN, Path("/t/c"), "READY", {}))
    assert (shared["ControlMaster"], shared["ControlPath"]) == ("yes", '"/t/c"')
    for command in (
        build_session_command(Path("/t/c"), "gpu1", ["id"]),
        build_port_command(Path("/t/c"), "gpu1", "n:7"),
    ):
        options = read_options(command)
        assert (options["ControlMaster"], options["ControlPath"]) == ("no", '"/t/c"')
        assert options["ProxyCommand"] == "false"


@pytest.mark.parametrize("words", [["echo", "a b"], ["echo", "$(id)", "'", ";"], ["-oProxyCommand=x"], ["echo", ""]])
def test_the_words_of_a_command_reach_the_other_side_as_they_are(words: list[str]) -> None:
    command = build_session_command(Path("/t/c"), "gpu1", words)
    assert command[-3:-1] == ["--", "gpu1"]
    assert shlex.split(command[-1]) == words


def test_a_port_is_named_before_the_host_that_ssh_wants() -> None:
    assert build_port_command(Path("/t/c"), "-oProxyCommand=x", "n1:7")[-4:] == ["-W", "n1:7", "--", "-oProxyCommand=x"]


@pytest.mark.parametrize(
    ("path", "quoted"),
    [("/a b", '"/a b"'), ("/a%h", '"/a%%h"'), ('/a"b', '"/a\\"b"'), ("/a\\b", '"/a\\\\b"')],
)
def test_a_path_is_one_word_without_expansions(path: str, quoted: str) -> None:
    destination = Destination("x", PLAIN.url, Path(path))
    assert read_options(build_tunnel_command(destination, Path("/s"), "R", {}))["UserKnownHostsFile"] == quoted


def test_a_host_has_the_pins_of_the_home_unless_it_names_others() -> None:
    spec = HostSpec(HostName("far"), "ssh://gpu1")
    assert find_destination(spec, Path("/home/r")).known_hosts == Path("/home/r/known_hosts")
    named = HostSpec(HostName("far"), "ssh://gpu1", known_hosts="/pins", identity="/keys/id")
    assert find_destination(named, Path("/home/r")) == Destination("far", PLAIN.url, Path("/pins"), Path("/keys/id"))
    with pytest.raises(UsageError, match="not reached over ssh"):
        find_destination(HostSpec(HostName("near"), "unix:///run/docker.sock"), Path("/home/r"))


@pytest.mark.parametrize(("destination", "words"), [(PLAIN, "gpu1"), (FAR, "-i /keys/id -p 2222 ann@gpu1.lab")])
def test_a_user_reads_how_to_reach_the_host_by_hand(destination: Destination, words: str) -> None:
    assert show_options(destination) == words
