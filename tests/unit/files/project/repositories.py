"""Repositories of git for tests, and what riseml makes of them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from riseml.files.archives.entries import EntryKind
from riseml.files.project.git_state import ask_git
from riseml.files.project.listing import Listing, Surroundings, list_project_files

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0123456789abcdef" * 4 + "\nsize 12345678\n"
LONG_POINTER = POINTER.replace(
    "oid", "ext-0-crypt sha256:{0}\next-1-zip sha256:{0}\noid".format("0123456789abcdef" * 4)
)


def git(folder: Path, *words: str) -> str:
    own = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "protocol.file.allow=always"]
    return subprocess.run(
        ["git", *own, *words], cwd=folder, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL
    ).stdout


def commit_all(folder: Path, *words: str) -> Path:
    """Make a repository of a folder, whose files git tracks although a rule ignores them."""
    git(folder, "init", "-q", *words)
    git(folder, "add", "-Af")
    git(folder, "commit", "-qm", "one")
    return folder


def list_files(folder: Path, around: Surroundings | None = None) -> list[str]:
    found = list_project_files(folder, around=around)
    return [entry.path for entry in found.entries if entry.kind is not EntryKind.FOLDER]


def is_clean(folder: Path) -> bool | None:
    question = ask_git(folder, os.environ)
    assert question is not None
    return question.read_answer()


def tell_incomplete(found: Listing) -> list[str]:
    return [f"{part.message}: {part.hint}" for part in found.incomplete]
