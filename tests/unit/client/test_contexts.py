"""The servers that a user has logged in to."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from riseml.base.errors import NotFound, Refused, UsageError
from riseml.base.settings import Settings
from riseml.client.contexts import (
    LOCAL,
    NO_CONTEXTS,
    Contexts,
    ServerContext,
    check_context_name,
    read_contexts,
    write_contexts,
)
from riseml.client.exchange import Address, read_address

GPU1 = ServerContext("gpu1", "https://gpu1:8443", "paul", "key-1", "SHA256:x", "-----BEGIN CERTIFICATE-----\n")
LAB = ServerContext("lab", "https://lab.example.org", also=("https://lab2.example.org",))


def save(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def test_contexts_are_what_was_written_and_nobody_else_can_read_them(tmp_path: Path) -> None:
    path = tmp_path / "new" / "config"
    assert read_contexts(path) == NO_CONTEXTS
    contexts = NO_CONTEXTS.add(LAB).add(GPU1)
    write_contexts(path, contexts)
    assert read_contexts(path) == contexts == Contexts("gpu1", (LAB, GPU1))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "key-1" not in repr(contexts)
    assert sorted(child.name for child in path.parent.iterdir()) == ["config"]


def test_a_context_is_replaced_chosen_and_removed() -> None:
    contexts = NO_CONTEXTS.add(LAB).add(GPU1)
    assert contexts.choose("lab").current == "lab"
    assert contexts.choose(LOCAL).current == LOCAL
    assert contexts.add(ServerContext("lab", "https://other")).find("lab").url == "https://other"
    assert contexts.remove("lab") == Contexts("gpu1", (GPU1,))
    assert contexts.remove("gpu1") == Contexts(LOCAL, (LAB,))
    for change in (contexts.find, contexts.choose, contexts.remove):
        with pytest.raises(NotFound, match="there is no context 'gpu2'; there are: local, lab, gpu1"):
            change("gpu2")


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o602, 0o620])
def test_a_file_that_others_can_read_or_write_is_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(Refused, match="is not a file of yours alone") as raised:
        read_contexts(save(tmp_path / "config", "current: local\n", mode))
    assert raised.value.hint == f"run `chmod 600 {tmp_path / 'config'}`"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("current: [\n", "config:2 cannot be used: "),
        ("- gpu1\n", "it has the keys `current` and `contexts` alone"),
        ("servers: {}\n", "it has the keys `current` and `contexts` alone"),
        ("contexts: [gpu1]\n", "`contexts` is a map of names and servers"),
        ("current: gpu2\ncontexts: {gpu1: {url: 'https://gpu1'}}\n", "`current` names 'gpu2'"),
        ("contexts: {gpu1: 'https://gpu1'}\n", "the context 'gpu1' is a map of "),
        ("contexts: {gpu1: {uri: 'https://gpu1'}}\n", "the context 'gpu1' has an unknown key 'uri'"),
        ("contexts: {gpu1: {user: paul}}\n", "the context 'gpu1' needs a text as url"),
        ("contexts: {gpu1: {url: 8443}}\n", "the context 'gpu1' needs a text as url"),
        ("contexts: {gpu1: {url: 'https://gpu1', also: 'https://gpu2'}}\n", "needs a list of URLs as also"),
        ("contexts: {gpu1: {url: 'https://gpu1', also: [8443]}}\n", "needs a list of URLs as also"),
        ("contexts: {gpu1: {url: 'https://gpu1', also: {gpu2: 8443}}}\n", "needs a list of URLs as also"),
        ("contexts: {1: {url: 'https://gpu1'}}\n", "the context 1 is a map of "),
        ("a: !!python/object/apply:os.system ['true']\n", "config:1 cannot be used: could not determine a constructor"),
        ("\0\n", "cannot be used"),
    ],
)
def test_a_file_that_says_something_else_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(UsageError) as raised:
        read_contexts(save(tmp_path / "config", text))
    assert problem in raised.value.message
    assert raised.value.hint == "mend it, or remove it and log in again"


@pytest.mark.parametrize("name", ["local", "", "a b", "-x", "a/b", "x" * 64, "https://gpu1"])
def test_some_names_are_no_names_of_contexts(name: str) -> None:
    with pytest.raises(UsageError):
        check_context_name(name)
    assert check_context_name("gpu1.lab-2") == "gpu1.lab-2"


def test_commands_go_to_the_current_context_and_the_variable_names_another(tmp_path: Path) -> None:
    settings = Settings(tmp_path, tmp_path / "output", tmp_path / "data")
    gpu1 = Address(None, GPU1.url, GPU1.key, GPU1.authority)
    assert read_address(settings, {}) == Address(settings.socket)
    write_contexts(tmp_path / "config", NO_CONTEXTS.add(LAB).add(GPU1))
    assert read_address(settings, {}) == gpu1
    lab = Address(None, LAB.url, also=LAB.also)
    assert read_address(settings, {"RISEML_SERVER": "lab"}) == lab
    assert read_address(settings, {"RISEML_SERVER": LAB.also[0]}) == lab
    assert read_address(settings, {"RISEML_SERVER": "local"}) == Address(settings.socket)
    assert read_address(settings, {"RISEML_SERVER": f"{GPU1.url}/"}) == gpu1
    assert read_address(settings, {"RISEML_API_KEY": "other"}).key == "other"
    other = read_address(settings, {"RISEML_SERVER": "https://other"})
    assert (other.key, other.authority) == (None, "")
    for name in ("gpu2", "gpu1:8443", "ftp://gpu1"):
        with pytest.raises(UsageError, match="which is neither a URL nor a context") as raised:
            read_address(settings, {"RISEML_SERVER": name})
        assert "riseml context" in (raised.value.hint or "")


def test_the_address_that_serves_comes_first() -> None:
    before = Contexts("gpu1", (GPU1, LAB))
    after = before.put_first("https://lab2.example.org")
    assert after.find("lab") == ServerContext("lab", "https://lab2.example.org", also=("https://lab.example.org",))
    assert (after.current, after.find("gpu1")) == ("gpu1", GPU1)
    assert after.put_first("https://lab.example.org") == before
    assert before.put_first("https://other") == before


def test_the_key_of_a_context_never_travels_without_tls(tmp_path: Path) -> None:
    settings = Settings(tmp_path, tmp_path / "output", tmp_path / "data")
    write_contexts(tmp_path / "config", NO_CONTEXTS.add(ServerContext("gpu1", "http://gpu1:8080", key="key-1")))
    with pytest.raises(Refused, match="a key is never sent without TLS"):
        read_address(settings, {})
    standby = ServerContext("gpu1", "https://gpu1", key="key-1", also=("http://gpu2:8080",))
    write_contexts(tmp_path / "config", NO_CONTEXTS.add(standby))
    with pytest.raises(Refused, match="a key is never sent without TLS"):
        read_address(settings, {})
    write_contexts(tmp_path / "config", NO_CONTEXTS.add(ServerContext("here", "http://127.0.0.1:8080", key="key-1")))
    assert read_address(settings, {}).key == "key-1"
