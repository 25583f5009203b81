"""The rules for all entries of a project: paths once, links that stay, whatever leads to what."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from riseml.base.errors import TooLarge, UsageError
from riseml.files.archives.entries import ArchiveEntry, EntryKind
from riseml.files.archives.tree import ProjectTree


def make_tree(*rows: str) -> ProjectTree:
    """Return a tree of `path`, `path/` and `path -> target`."""
    tree = ProjectTree()
    for row in rows:
        path, arrow, target = row.partition(" -> ")
        kind = EntryKind.LINK if arrow else EntryKind.FOLDER if path.endswith("/") else EntryKind.FILE
        tree.add_entry(ArchiveEntry(path.removesuffix("/"), kind, target=target))
    return tree


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        (("a", "a"), "'a' is there twice"),
        (("a/", "a"), "'a' is there twice"),
        (("a", "a/"), "'a' is there twice"),
        (("a/b", "a"), "'a' is there twice"),
        (("a/b", "a -> c"), "'a' is there twice"),
        (("a", "a/b"), "'a/b' is below a file"),
        (("a -> c", "a/b"), "'a/b' is below a link"),
        (("x/a -> c", "x/a/b/c"), "'x/a/b/c' is below a link"),
    ],
)
def test_a_path_is_there_once(rows: tuple[str, ...], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        make_tree(*rows)


def test_a_folder_may_be_named_twice() -> None:
    tree = make_tree("a/", "a/", "a/b", "c/", "a/")
    assert [tree.is_empty(folder) for folder in ("a", "c")] == [False, True]


@pytest.mark.parametrize(
    "rows",
    [
        ("a -> ../x",),
        ("a -> b/../../x",),
        ("a/b -> ../../x",),
        ("a/b/top -> ../..", "a/b/out -> top/../x"),
        ("a/b/out -> top/../x", "a/b/top -> ../.."),
        ("a -> .", "b -> a/a/a/../x"),
        ("d/e/f", "one -> d/e", "two -> one/../../.."),
        ("one -> two/..", "two -> d", "three -> one/.."),
    ],
)
def test_a_link_that_leaves_is_refused(rows: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="leads out of the project"):
        make_tree(*rows).check_links()


@pytest.mark.parametrize(
    "rows",
    [
        ("a -> .", "b -> a/a/a"),
        ("a -> a",),
        ("a -> b", "b -> a"),
        ("a/b/c", "d/e -> ../a/b", "d/f -> e/../b/c"),
        ("a -> missing/../x",),
    ],
)
def test_a_link_that_stays_is_taken(rows: tuple[str, ...]) -> None:
    make_tree(*rows).check_links()


def test_links_are_followed_as_linux_does(tmp_path: Path) -> None:
    """A thousand random trees of folders and links: what the kernel finds outside is refused, and nothing else."""
    source = random.Random(7)
    verdicts = set()
    for number in range(1000):
        root = tmp_path / str(number) / "project"
        (root / "a/b").mkdir(parents=True)
        rows = ["a/b/"]
        for place in source.sample(["l", "a/m", "a/b/n", "o", "a/p"], 3):
            target = "/".join(source.choices(["..", "a", "b", "l", "m", "n", "o", "p"], k=source.randint(1, 4)))
            rows.append(f"{place} -> {target}")
            (root / place).symlink_to(target)
        leaves = any(_leaves(root, row.partition(" -> ")[0]) for row in rows[1:])
        try:
            make_tree(*rows).check_links()
        except UsageError:
            verdicts.add((leaves, True))
        else:
            verdicts.add((leaves, False))
            assert not leaves, rows
    assert {(True, True), (False, False)} <= verdicts


def _leaves(root: Path, path: str) -> bool:
    """Return whether the kernel follows a link to a place outside; a link to nothing stays."""
    try:
        end = os.path.realpath(root / path, strict=True)
    except OSError:
        return False
    return not f"{end}/".startswith(f"{root}/")


def test_links_that_lead_to_each_other_take_a_bounded_time() -> None:
    doubling = ["l0 -> ."] + [f"l{n} -> l{n - 1}/l{n - 1}" for n in range(1, 60)]
    make_tree(*doubling).check_links()
    target = "/".join(["f"] * 2000)
    with pytest.raises(TooLarge, match="lead to each other too often"):
        make_tree(*(f"x{number} -> {target}" for number in range(5000))).check_links()


def test_names_have_a_bound_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("riseml.files.archives.tree.LONGEST_NAMES", 10)
    with pytest.raises(TooLarge, match="more than 10 bytes together"):
        make_tree("a", "b -> cdefg", "hijk")
    with pytest.raises(TooLarge, match="more than 10 bytes together"):
        make_tree("ä/ä/ä")


def test_folders_that_are_only_there_for_a_deep_file_count() -> None:
    """An archive of 100 MB could name millions of them, whose paths have gigabytes."""
    with pytest.raises(TooLarge, match="bytes together"):
        make_tree(*(f"{number}/" + "a/" * 2000 + "b" for number in range(100)))


def test_folders_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("riseml.files.archives.tree.MOST_FOLDERS", 3)
    make_tree("a/b/c/d", "a/b/e")
    with pytest.raises(TooLarge, match="more than 3 folders"):
        make_tree("a/b/c/d", "a/e/f")
