"""Patterns of known_hosts match as OpenSSH matches them; new keys replace those of one host only."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riseml.executors.transports.hostkeys import find_pinned_keys, names_host, replace_pinned_keys

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"
OTHER_KEY = ("ssh-ed25519", "AAAAother")

CASES = [
    ("gpu1.lab", "gpu1.lab", True),
    ("*.lab", "gpu1.lab", True),
    ("*.lab", "lab", False),
    ("*", "gpu1.lab", True),
    ("**", "gpu1.lab", True),
    ("gpu?.lab", "gpu1.lab", True),
    ("gpu?.lab", "gpu12.lab", False),
    ("GPU1.Lab", "gpu1.lab", True),
    ("gpu1.lab", "GPU1.lab", True),
    ("*.lab,!gpu1.lab", "gpu1.lab", False),
    ("!gpu1.lab,*.lab", "gpu1.lab", False),
    ("*.lab,!gpu1.lab", "gpu2.lab", True),
    ("!gpu1.lab", "gpu2.lab", False),
    ("10.0.0.1,gpu1.lab", "gpu1.lab", True),
    ("10.0.0.1, gpu1.lab", "gpu1.lab", False),
    ("", "gpu1.lab", False),
    (",", "gpu1.lab", False),
    ("[gpu1.lab]:2222", "[gpu1.lab]:2222", True),
    ("[*.lab]:2222", "[gpu1.lab]:2222", True),
    ("[*.lab]:*", "[gpu1.lab]:2222", True),
    ("*.lab", "[gpu1.lab]:2222", False),
    ("[gpu1.lab]:2222", "gpu1.lab", False),
    ("[gpu1.lab]", "g", False),
    ("gpu1.lab.", "gpu1.lab", False),
    ("gpu1xlab", "gpu1.lab", False),
    ("gpu1.lab", "gpu1xlab", False),
    ("x" * 1023 + ",*", "gpu1.lab", False),
    ("*," + "x" * 1023, "gpu1.lab", False),
    ("x" * 1022 + ",*", "gpu1.lab", True),
    ("|1|", "gpu1.lab", False),
    ("|1|c2FsdA==|AAAA", "gpu1.lab", False),
    ("|1|\udcff|AAAA", "gpu1.lab", False),
    ("|2|c2FsdA==|AAAA", "gpu1.lab", False),
]

# `make unit` runs on machines without OpenSSH, too; `make test` installs it (scripts/engine/sshd).
needs_ssh_keygen = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed")


def ask_ssh_keygen(fields: list[str], name: str) -> list[bool]:
    """Return for each first field of a line whether `ssh-keygen -F` finds the name there."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "known_hosts")
        text = "".join(f"{field} {KEY}\n" for field in fields)
        path.write_text(text, encoding="utf-8", errors="surrogateescape")
        command = ["ssh-keygen", "-F", name, "-f", str(path)]
        answer = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    found = {int(number) for number in re.findall(r"^# Host .* found: line (\d+)", answer.stdout, re.MULTILINE)}
    return [number in found for number in range(1, len(fields) + 1)]


@pytest.mark.parametrize(("field", "name", "matches"), CASES)
def test_a_field_names_a_host(field: str, name: str, *, matches: bool) -> None:
    assert names_host(field, name) is matches


@needs_ssh_keygen
def test_the_cases_are_what_ssh_keygen_finds() -> None:
    for name in {name for _, name, _ in CASES}:
        cases = [(field, matches) for field, of, matches in CASES if of == name and field not in ("", ",")]
        assert ask_ssh_keygen([field for field, _ in cases], name) == [matches for _, matches in cases], name


FIELDS = st.lists(st.text("ab.*?!,[]:2", min_size=1, max_size=8), min_size=20, max_size=60)
NAMES = st.sampled_from(["a", "ab", "a.b", "b.a.b", "[a.b]:2", "[a]:22", "A.b"])


@needs_ssh_keygen
@settings(max_examples=60, deadline=None)
@given(FIELDS, NAMES)
def test_random_patterns_match_as_ssh_keygen_matches_them(fields: list[str], name: str) -> None:
    assert [names_host(field, name) for field in fields] == ask_ssh_keygen(fields, name)


@needs_ssh_keygen
def test_a_hashed_name_is_found(tmp_path: Path) -> None:
    path = tmp_path / "known_hosts"
    path.write_text(f"gpu1.lab {KEY}\n[gpu1.lab]:2222 {KEY}\n")
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(path)], check=True, capture_output=True)
    first, second = [line.split()[0] for line in path.read_text().splitlines()]
    assert first.startswith("|1|")
    assert [names_host(field, "gpu1.lab") for field in (first, second)] == [True, False]
    assert [names_host(field, "[gpu1.lab]:2222") for field in (first, second)] == [False, True]
    assert not names_host(f"{first},gpu2.lab", "gpu1.lab"), "OpenSSH hashes one name a line"


def test_comments_marked_and_incomplete_lines_pin_nothing() -> None:
    lines = [
        "# *.lab ssh-rsa A",
        "@revoked *.lab ssh-rsa A",
        "@cert-authority *.lab ssh-rsa A",
        "*.lab ssh-rsa",
        "",
        "x",
    ]
    assert list(find_pinned_keys(lines, "gpu1.lab")) == []
    assert list(find_pinned_keys([*lines, "\t*.lab  ssh-rsa\tA ann's key"], "gpu1.lab")) == [("ssh-rsa", "A")]


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("gpu1.lab ssh-ed25519 A", None),
        ("GPU1.lab ssh-ed25519 A", None),
        ("gpu1.lab,!gpu2.lab ssh-ed25519 A", None),
        ("gpu2.lab ssh-ed25519 A", "gpu2.lab ssh-ed25519 A"),
        ("gpu1.lab,10.0.0.1 ssh-ed25519 A comment", "10.0.0.1 ssh-ed25519 A comment"),
        ("*.lab ssh-ed25519 A", "*.lab,!gpu1.lab ssh-ed25519 A"),
        ("gpu1.lab,gpu?.lab ssh-ed25519 A", "gpu?.lab,!gpu1.lab ssh-ed25519 A"),
        ("@revoked *.lab ssh-ed25519 A", "@revoked *.lab ssh-ed25519 A"),
        ("# gpu1.lab", "# gpu1.lab"),
    ],
)
def test_a_new_key_replaces_those_of_one_host(line: str, kept: str | None) -> None:
    lines = replace_pinned_keys([line], "gpu1.lab", [OTHER_KEY])
    assert lines == [*([] if kept is None else [kept]), f"gpu1.lab {' '.join(OTHER_KEY)}"]


@given(FIELDS, NAMES)
def test_after_a_replacement_the_host_has_the_new_key_and_every_other_host_its_old_ones(
    fields: list[str], name: str
) -> None:
    lines = [f"{field} {KEY}" for field in fields]
    replaced = replace_pinned_keys(lines, name, [OTHER_KEY])
    assert list(find_pinned_keys(replaced, name)) == [OTHER_KEY]
    for other in ("a.b.b", "b", "bb", "[b]:2", "[a.b]:22"):
        assert list(find_pinned_keys(replaced, other)) == list(find_pinned_keys(lines, other))
