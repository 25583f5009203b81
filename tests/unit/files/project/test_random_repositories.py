"""Random repositories: riseml sends exactly the files that `git ls-files -co --exclude-standard` names."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

import pytest

from riseml.files.archives.entries import EntryKind
from riseml.files.project.listing import list_project_files

NAMES = ("a.py", "b.key", "c.bin", "d.log", "out", "data", "run1", "[x]", "e f", "é")
RULES = (
    "*.key",
    "*.bin",
    "/out",
    "out/",
    "data/*",
    "!data/a.py",
    "**/run?",
    "run[0-9]/**",
    "!*.log",
    "*.log",
    "/*",
    "!*.py",
    "!/data/",
    "libs",
    "libs/part",
    "e\\ f",
    "e f/",
    "\\[x\\]",
    "é",
    "*",
    "!*/",
    "/libs/part/*",
)
GIT = ("git", "-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "protocol.file.allow=always")


def git(folder: Path, *words: str) -> bytes:
    return subprocess.run([*GIT, *words], cwd=folder, check=True, capture_output=True, stdin=subprocess.DEVNULL).stdout


class RandomRepository:
    """A work tree with random files, rules and an index of a random form."""

    def __init__(self, choice: random.Random, top: Path) -> None:
        self.choice = choice
        self.top = top

    def fill(self) -> None:
        """Write files, of which some have been there before."""
        for _ in range(self.choice.randint(3, 9)):
            path = self.top.joinpath(*self.choice.choices(NAMES, k=self.choice.choice((1, 1, 2, 3))))
            if not any(parent.is_file() for parent in path.parents) and not path.is_dir():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(str(path.name))

    def write_rules(self, path: Path, most: int = 4) -> None:
        path.write_text("".join(f"{rule}\n" for rule in self.choice.choices(RULES, k=self.choice.randint(0, most))))

    def track(self) -> None:
        """Make git track some files, of which rules ignore some."""
        listed = [
            path for path in sorted(self.top.rglob("*")) if path.is_file() and not {".git", "libs"} & set(path.parts)
        ]
        chosen = [str(path.relative_to(self.top)) for path in listed if self.choice.random() < 0.5]
        if chosen:
            git(self.top, "--literal-pathspecs", "add", "-f", "--", *chosen)

    def make(self) -> None:
        git(self.top, "init", "-q")
        git(self.top, "config", "index.version", self.choice.choice(("2", "4")))
        self.fill()
        self.track()
        git(self.top, "commit", "-q", "--allow-empty", "-m", "one")

    def change_index(self) -> None:
        """Give the index one of the forms that git has for it."""
        form = self.choice.choice(("plain", "split", "split and more", "cone", "sparse index", "patterns", "intent"))
        if form.startswith("split"):
            git(self.top, "update-index", "--split-index")
        if form == "split and more":
            self.fill()
            self.track()
        if form in ("cone", "sparse index"):
            more = ["--sparse-index"] if form == "sparse index" else []
            folders = [name for name in ("data", "out", "run1") if not (self.top / name).is_file()]
            git(self.top, "sparse-checkout", "set", "--cone", *more, *folders[:1])
        if form == "patterns":
            git(self.top, "sparse-checkout", "set", "--no-cone", self.choice.choice(("*.py", "/data", "!/out")))
        if form == "intent":
            self.fill()
            git(self.top, "add", "-f", "--intent-to-add", "--", ".")


def list_by_git(top: Path) -> set[bytes]:
    """Return the files of a work tree and of its submodules that git would carry."""
    listed = set(git(top, "ls-files", "-co", "--exclude-standard", "-z").split(b"\0")) - {b""}
    stages = [line.split(b"\t") for line in git(top, "ls-files", "-sz").split(b"\0") if line.startswith(b"160000 ")]
    below = set()
    for _, name in stages:
        if os.path.lexists(top / os.fsdecode(name) / ".git"):
            below |= {name + b"/" + path for path in list_by_git(top / os.fsdecode(name))}
    paths = {path for path in listed if os.path.isfile(os.path.join(os.fsencode(top), path))}
    return paths | below


@pytest.mark.parametrize("seed", range(16))
def test_random_repositories_are_listed_as_git_lists_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    choice = random.Random(seed)
    home, top = tmp_path / "home", tmp_path / "top"
    for folder in (home / "git", top, tmp_path / "part"):
        folder.mkdir(parents=True)
    project = RandomRepository(choice, top)
    monkeypatch.delenv("GIT_CONFIG_GLOBAL", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    project.write_rules(home / "git" / "ignore", 1)
    project.make()
    if choice.random() < 0.6:
        RandomRepository(choice, tmp_path / "part").make()
        git(top, "submodule", "add", "-q", "-f", str(tmp_path / "part"), "libs/part")
        git(top, "commit", "-qm", "two")
        part = RandomRepository(choice, top / "libs" / "part")
        part.fill()
        part.write_rules(part.top / ".gitignore", 2)
        part.write_rules(top / ".git" / "modules" / "libs" / "part" / "info" / "exclude", 1)
    if choice.random() < 0.3:
        git(top, "worktree", "add", "-q", "-f", str(tmp_path / "other"))
        project.top = top = tmp_path / "other"
    project.fill()
    project.write_rules(top / ".gitignore")
    project.write_rules(tmp_path / "top" / ".git" / "info" / "exclude", 2)
    if (top / "data").is_dir():
        project.write_rules(top / "data" / ".gitignore", 2)
    project.change_index()
    project.fill()
    listed = {
        os.fsencode(entry.path) for entry in list_project_files(top).entries if entry.kind is not EntryKind.FOLDER
    }
    assert listed == list_by_git(top)
