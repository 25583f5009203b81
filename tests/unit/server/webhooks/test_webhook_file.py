"""notify.yml: who may read it, what it may say, and mistakes without the values of the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.base.errors import Refused, UsageError
from riseml.base.states import State
from riseml.server.webhooks.webhook_file import FILE, WebhookFormat, read_webhooks

SECRET = "canary-5e1f"


def write(home: Path, text: str, mode: int = 0o600) -> None:
    (home / FILE).write_text(text)
    (home / FILE).chmod(mode)


def test_a_file_is_read(tmp_path: Path) -> None:
    assert read_webhooks(tmp_path) == ()
    some = "events: [failed], projects: [toaster], format: slack"
    one = f"{{name: team, url: 'https://hooks.example.org/{SECRET}', {some}}}"
    two = f"{{name: mine, url: 'http://127.0.0.1:9/x', secret: {SECRET}}}"
    write(tmp_path, f"webhooks: [{one}, {two}]")
    first, second = read_webhooks(tmp_path)
    assert (first.format, first.states) == (WebhookFormat.SLACK, frozenset({State.FAILED}))
    assert [first.wants("toaster", State.FAILED), first.wants("toaster", State.KILLED)] == [True, False]
    assert [first.wants("bread", State.FAILED), second.wants("bread", State.KILLED)] == [False, True]
    assert SECRET not in repr((first, second))


@pytest.mark.parametrize(
    ("written", "secret"), [("01234567", "01234567"), ("12:30:45", "12:30:45"), ("1_0", "1_0"), ("no", "no"), ("", "")]
)
def test_a_secret_is_what_the_file_has(tmp_path: Path, written: str, secret: str) -> None:
    """YAML would read some of them as numbers, and the receiver computes other signatures."""
    one = f"- &one\n  name: 010\n  url: http://192.0.2.1/x\n  insecure: yes\n  secret: {written}\n  projects: [007]\n"
    write(tmp_path, f"webhooks:\n{one}- {{<<: *one, name: two, projects: }}\n")
    first, second = read_webhooks(tmp_path)
    assert (first.name, first.secret, first.projects) == ("010", secret, frozenset({"007"}))
    assert (second.name, second.secret, second.projects) == ("two", secret, None)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
def test_a_file_that_others_reach_is_refused(tmp_path: Path, mode: int) -> None:
    write(tmp_path, "webhooks: []", mode)
    with pytest.raises(Refused, match="not a file of yours alone"):
        read_webhooks(tmp_path)


def test_a_link_and_a_folder_are_refused(tmp_path: Path) -> None:
    write(tmp_path, "webhooks: []")
    (tmp_path / FILE).rename(tmp_path / "elsewhere")
    (tmp_path / FILE).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Refused):
        read_webhooks(tmp_path)
    (tmp_path / FILE).unlink()
    (tmp_path / FILE).mkdir(mode=0o700)
    with pytest.raises((Refused, OSError)):
        read_webhooks(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        f"{SECRET}",
        f"webhooks: {SECRET}",
        f"webhooks: [{SECRET}]",
        f"webhooks: [{{name: a, url: '{SECRET}'}}]",
        f"webhooks: [{{name: a, url: 'http://hooks.example.org/{SECRET}'}}]",
        f"webhooks: [{{name: a, url: 'https://user:{SECRET}@example.org'}}]",
        f"webhooks: [{{name: a, url: 'file:///{SECRET}'}}]",
        f"webhooks: [{{name: a, url: 'https://[{SECRET}'}}]",
        f"webhooks: [{{name: a, url: 'https://example.org/{SECRET} x'}}]",
        f"webhooks: [{{name: a, url: 'https://example.org/x', secret: '{SECRET} x'}}]",
        f"webhooks: [{{name: a, url: 'https://example.org/{SECRET}', events: [running]}}]",
        f"webhooks: [{{name: a, url: 'https://example.org/{SECRET}', events: 3}}]",
        f"webhooks: [{{name: a, url: 'https://example.org/{SECRET}', format: [{SECRET}]}}]",
        f"webhooks: [{{name: A b, url: 'https://example.org/{SECRET}'}}]",
        f"webhooks: [{{name: a, url: 'https://example.org/{SECRET}', more: 1}}]",
        f"webhooks: [{{name: a, url: 'https://x.org/{SECRET}'}}, {{name: a, url: 'https://x.org/'}}]",
        f"a: &a [{SECRET}]\nb: *a\n",
        "webhooks: !!python/object/apply:os.system [true]",
        "[" * 2000,
        "#" * 300_000,
    ],
)
def test_a_mistake_is_named_without_a_value(tmp_path: Path, text: str) -> None:
    write(tmp_path, text)
    with pytest.raises(UsageError) as error:
        read_webhooks(tmp_path)
    assert SECRET not in f"{error.value.message} {error.value.hint}"
