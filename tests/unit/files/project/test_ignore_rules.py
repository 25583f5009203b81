"""Ignore rules against git itself."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from riseml.base.errors import UsageError
from riseml.files.project.ignore_rules import RuleFile, is_ignored, parse_rules, read_rules
from tests.support.waiting import DEADLINE
from tests.unit.files.project.builders import drop_privileges

CASES = {
    "a name anywhere": ["a"],
    "a name at the top": ["/a"],
    "folders only": ["a/"],
    "a path": ["a/b"],
    "everything but": ["*", "!*/", "!*.o"],
    "content of a folder": ["a/*", "!a/b"],
    "all below a folder": ["a/**", "!a/b"],
    "in every folder": ["**/b"],
    "any depth between": ["a/**/b"],
    "stars inside a name": ["a**", "!a**b"],
    "stars that are not a segment": ["a/**b", "a**/b"],
    "an escaped star": [r"a\*", r"\**"],
    "one character": ["?"],
    "a set": ["[ab]"],
    "not in a set": ["[!a]", "[^b].o"],
    "a bracket in a set": ["[]a]", r"[\]a]"],
    "a range": ["[a-b].o"],
    "a turned range": ["[b-a]"],
    "a class": ["[[:alpha:]]"],
    "no such class": ["[[:letters:]]", "a"],
    "a slash in a set": ["a[/]b"],
    "an open bracket": ["[a", "b"],
    "a backslash at the end": ["a\\", "b"],
    "spaces at the end": ["a  ", r"b\ ", r"a\ "],
    "a comment": ["#a", r"\#a"],
    "an exclamation mark": [r"\!b", "!b"],
    "carriage return": ["a\r", "*.o\r"],
    "not only ASCII": ["é"],
    "empty lines": ["", "   ", "/", "!", "b"],
}
NAMES = ["a", "b", "ab", "foo", "a.o", "b.o", ".x", "a b", "[a]", "é", "foobar", "#a", "a ", "\\", "a*", "!b", "**"]
PIECES = ["a", "b", "*", "**", "?", "/", "!", ".o", "[ab]", "[!a]", "[a-b]", "foo", "\\", "\\*", " ", "[", "é", "\r"]


def _fill(folder: Path, chance: random.Random) -> list[str]:
    """Make files in folders; return all their paths."""
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    for _ in range(40):
        path = folder.joinpath(*chance.choices(NAMES, k=chance.randint(1, 3)))
        if not any(parent.is_file() for parent in path.parents) and not path.is_dir():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
    return [
        os.path.relpath(os.path.join(root, name), folder)
        for root, folders, files in os.walk(folder)
        if ".git" not in Path(root).relative_to(folder).parts
        for name in (*folders, *files)
        if name != ".git"
    ]


def _ask_git(folder: Path, paths: list[str]) -> set[str]:
    git = ["git", "-C", str(folder), "-c", "core.excludesFile=/dev/null"]
    command = [*git, "check-ignore", "--no-index", "-z", "--stdin"]
    answer = subprocess.run(command, input="\0".join(paths).encode(), capture_output=True, check=False)
    return set(answer.stdout.decode().split("\0")) - {""}


def _ask_riseml(folder: Path, rules: RuleFile | None, paths: list[str]) -> set[str]:
    chain = () if rules is None else (rules,)

    def out(path: str) -> bool:
        return is_ignored(chain, path.encode(), is_folder=(folder / path).is_dir())

    return {path for path in paths if any(out(str(part)) for part in (Path(path), *Path(path).parents[:-1]))}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    folder = tmp_path_factory.mktemp("rules")
    return folder, _fill(folder, random.Random(1))


@pytest.mark.parametrize("lines", CASES.values(), ids=CASES.keys())
def test_rules_mean_what_they_mean_to_git(place: tuple[Path, list[str]], lines: list[str]) -> None:
    folder, paths = place
    content = "\n".join(lines).encode()
    (folder / ".gitignore").write_bytes(content)
    assert _ask_riseml(folder, parse_rules(content.split(b"\n")), paths) == _ask_git(folder, paths)


@pytest.mark.parametrize("seed", range(150))
def test_random_rules_mean_what_they_mean_to_git(place: tuple[Path, list[str]], seed: int) -> None:
    folder, paths = place
    chance = random.Random(seed)
    lines = ["".join(chance.choices(PIECES, k=chance.randint(1, 5))) for _ in range(chance.randint(1, 5))]
    content = "\n".join(lines).encode()
    (folder / ".gitignore").write_bytes(content)
    assert _ask_riseml(folder, parse_rules(content.split(b"\n")), paths) == _ask_git(folder, paths)


STARS = ["a", "b", "*", "*", "*a", "**/", "/**/", "**\\/", "?", "/", "/*", "[ab]", "ab", ".o"]


@pytest.mark.parametrize("seed", range(100))
def test_rules_of_many_stars_mean_what_they_mean_to_git(place: tuple[Path, list[str]], seed: int) -> None:
    folder, paths = place
    chance = random.Random(seed)
    lines = ["".join(chance.choices(STARS, k=chance.randint(3, 9))) for _ in range(chance.randint(1, 3))]
    content = "\n".join(lines).encode()
    (folder / ".gitignore").write_bytes(content)
    assert _ask_riseml(folder, parse_rules(content.split(b"\n")), paths) == _ask_git(folder, paths)


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ("*a*a*a*a*ab", "a" * 250),
        ("*a" * 100 + "b", "a" * 250),
        ("x/" + "*a" * 100 + "b/y", "x/" + "a" * 250 + "/y"),
        ("**/a*/" * 30 + "b", "/".join(["a" * 60] * 60)),
        ("[ab]*?*" * 50 + "c", "ab" * 125),
    ],
    ids=["five stars", "a hundred stars", "stars in a path", "folders between", "sets and single characters"],
)
def test_a_rule_of_many_stars_needs_no_exponential_search(rule: str, path: str) -> None:
    """Backtracking through these would take longer than the universe exists; in another process, it can be ended."""
    program = (
        "import sys; from riseml.files.project.ignore_rules import is_ignored, parse_rules;"
        "rules = parse_rules([sys.argv[1].encode()]); assert rules;"
        "print(is_ignored((rules,), sys.argv[2].encode(), is_folder=False))"
    )
    command = [sys.executable, "-c", program, rule, path]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=DEADLINE)
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_rules_are_on_bytes() -> None:
    rules = parse_rules([b"\xff*"])
    assert rules is not None
    assert is_ignored((rules,), b"x/\xff1", is_folder=False)
    assert not is_ignored((rules,), b"x/1", is_folder=False)


def test_the_deeper_file_decides(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / ".gitignore").write_text("*.log\n")
    (tmp_path / "sub" / ".risemlignore").write_text("!keep.log\n")
    chain = (*read_rules(os.fsencode(tmp_path), b""), *read_rules(os.fsencode(tmp_path / "sub"), b"sub"))
    assert is_ignored(chain, b"sub/x.log", is_folder=False)
    assert not is_ignored(chain, b"sub/keep.log", is_folder=False)


def test_risemlignore_has_the_last_word_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("model.bin\n")
    (tmp_path / ".risemlignore").write_text("!model.bin\nraw\n")
    chain = tuple(read_rules(os.fsencode(tmp_path), b""))
    assert not is_ignored(chain, b"model.bin", is_folder=False)
    assert is_ignored(chain, b"raw", is_folder=True)


def test_a_linked_gitignore_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "rules").write_text("a\n")
    (tmp_path / ".gitignore").symlink_to("rules")
    assert tuple(read_rules(os.fsencode(tmp_path), b"")) == ()


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("a\n")
    (tmp_path / ".gitignore").chmod(0)
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    with drop_privileges(), pytest.raises(UsageError, match="gitignore"):
        tuple(read_rules(os.fsencode(tmp_path), b""))
