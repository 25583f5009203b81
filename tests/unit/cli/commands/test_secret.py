"""`riseml secret`, `riseml registry`: a value comes from a file, standard input or a question, and is never shown."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer

VALUE = "hf_s3cret-value"
SECRET: dict[str, object] = {
    "name": "hf",
    "owner": "paul",
    "owner_kind": "user",
    "set_at": "2026-11-28T19:00:00Z",
    "set_by": "paul",
}
SECRET |= {"used_at": None}
REGISTRY: dict[str, object] = {"host": "registry.lab", "login": "me", "owner": "toaster", "owner_kind": "project"}
REGISTRY |= {"set_at": "2026-11-28T19:00:00Z", "set_by": "paul", "used_at": "2026-11-28T19:30:00Z"}


def _type(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))


@pytest.mark.parametrize(
    ("words", "typed", "sent"),
    [
        (("set", "hf"), b"hf_s3cret-value\n", VALUE),
        (("set", "hf"), b"two\nlines\n\n", "two\nlines\n"),
        (("set", "hf", "--file", "-"), b"hf_s3cret-value\r\n", VALUE),
        (("set", "hf", "--file", "key"), b"", "-----\nkey\n"),
    ],
)
def test_a_secret_is_read_from_standard_input_or_a_file(
    words: tuple[str, ...],
    typed: bytes,
    sent: str,
    riseml: Riseml,
    fake_server: FakeServer,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (folder / "key").write_text("-----\nkey\n")
    fake_server.answers["PUT /secrets/hf"] = (200, SECRET)
    _type(monkeypatch, typed)
    done = riseml("secret", *words)
    assert (done.code, done.err) == (0, "")
    assert done.out == "Your secret hf is set. In riseml.yml: `env: {NAME: {secret: hf}}`\n"
    assert fake_server.bodies[-1] == {"value": sent}


@pytest.mark.parametrize(
    ("words", "typed", "problem"),
    [
        (("secret", "set", "hf", VALUE), b"", "a value is no argument"),
        (("secret", "set", "h f"), b"x", "is not the name of a secret"),
        (("secret", "set", "1hf"), b"x", "is not the name of a secret"),
        (("secret", "set", "hf"), b"", "the value is empty"),
        (("secret", "set", "hf"), b"a\0b", "the value has a NUL character"),
        (("secret", "set", "hf"), b"\xff", "standard input is not UTF-8 text"),
        (("secret", "set", "hf"), b"x" * 65_537, "the value has 65,537 bytes, and a secret at most 65,536"),
        (("secret", "set", "hf", "--file", "none"), b"", "none cannot be read: No such file or directory"),
        (("secret", "remove", "a/b"), b"", "is not the name of a secret"),
        (("registry", "login", "registry.lab"), b"x", "-u"),
        (("registry", "login", "registry.lab", "-u", "me"), b"x", "there is no terminal to ask for the password on"),
        (("registry", "login", "registry.lab", "-u", "me", "--password-stdin"), b"\n", "the value is empty"),
        (("registry", "login", "https://registry.lab", "-u", "me"), b"x", "is not the host of a registry"),
        (("registry", "logout", "registry.lab/me"), b"", "is not the host of a registry"),
    ],
)
def test_wrong_forms_are_refused_and_show_no_value(
    words: tuple[str, ...], typed: bytes, problem: str, riseml: Riseml, monkeypatch: pytest.MonkeyPatch
) -> None:
    _type(monkeypatch, typed)
    done = riseml(*words)
    assert done.code == 2, done.err
    assert problem in done.err
    assert "Traceback" not in done.err
    assert VALUE not in done.out + done.err


def test_lists_show_owners_and_times(riseml: Riseml, fake_server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_server.answers["GET /secrets"] = (200, {"secrets": [SECRET]})
    fake_server.answers["GET /registries"] = (200, {"registries": [REGISTRY]})
    fake_server.answers["PUT /registries/registry.lab"] = (200, REGISTRY)
    fake_server.answers["DELETE /secrets/hf"] = (200, {"name": "hf", "owner": "paul", "owner_kind": "user"})
    assert riseml("secret", "list").out.splitlines() == [
        "NAME  OWNER  SET                   LAST USED",
        "hf    paul   2026-11-28T19:00:00Z  never",
    ]
    assert riseml("registry", "list").out.splitlines()[1].split()[:4] == ["registry.lab", "me", "project", "toaster"]
    assert riseml("secret", "remove", "hf").out == "The secret hf of paul is removed.\n"
    _type(monkeypatch, b"pass\n")
    login = ("registry", "login", "Registry.lab", "-u", "me", "--password-stdin", "--project", "toaster")
    assert riseml(*login).out == "Images of registry.lab are pulled as me for experiments of project toaster.\n"
    assert fake_server.bodies[-1] == {"login": "me", "password": "pass"}
    assert json.loads(riseml("secret", "list", "--json").out) == {"secrets": [SECRET]}
