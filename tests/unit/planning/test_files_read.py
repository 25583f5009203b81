"""Which files install steps may read, and the bounds of that search."""

from __future__ import annotations

import pytest

from riseml.errors import UsageError
from riseml.planning import files_read
from riseml.planning.files_read import list_files_read

STEP = ("pip install -r r0.txt",)


def test_files_that_include_each_other_in_a_circle_are_found_once() -> None:
    texts = {"r0.txt": "-r r1.txt\n-c r0.txt\n", "r1.txt": "numpy\n  --constraint=r2.txt\n", "r2.txt": "-r r0.txt\n"}
    assert list_files_read(STEP, dict.fromkeys(texts, ""), texts) == ("r0.txt", "r1.txt", "r2.txt")


def test_an_include_is_named_on_its_own_line() -> None:
    texts = {"r0.txt": "-r\nr1.txt\n"}
    assert list_files_read(STEP, {"r0.txt": "", "r1.txt": ""}, texts) == ("r0.txt",)


def test_a_folder_is_all_files_below_it_and_nothing_beside_it() -> None:
    files = dict.fromkeys(("a/b.txt", "a/c/d.txt", "a-b.txt", "a0", "ab/c.txt"), "")
    assert list_files_read(("ls a",), files, {}) == ("a/b.txt", "a/c/d.txt")
    assert list_files_read(("ls a/*.txt",), files, {}) == ("a/b.txt", "a/c/d.txt")


@pytest.mark.parametrize("depth", [files_read.MOST_DEPTH, files_read.MOST_DEPTH + 1])
def test_files_include_each_other_to_a_bounded_depth(depth: int) -> None:
    texts = {f"r{level}.txt": f"-r r{level + 1}.txt" for level in range(depth)} | {f"r{depth}.txt": "numpy"}
    files = dict.fromkeys(texts, "")
    if depth <= files_read.MOST_DEPTH:
        assert len(list_files_read(STEP, files, texts)) == depth + 1
    else:
        with pytest.raises(UsageError, match="more than 50 deep"):
            list_files_read(STEP, files, texts)


def test_the_number_of_files_that_include_others_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files_read, "MOST_INCLUDING", 3)
    texts = {"r0.txt": "\n".join(f"-r r{number}.txt" for number in range(1, 5))}
    texts |= {f"r{number}.txt": "-r r0.txt" for number in range(1, 5)}
    with pytest.raises(UsageError, match="more than 3 requirement files"):
        list_files_read(STEP, dict.fromkeys(texts, ""), texts)


def test_the_text_that_is_read_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files_read, "MOST_TEXT", 10)
    with pytest.raises(UsageError, match="more than 10 characters"):
        list_files_read(STEP, {"r0.txt": ""}, {"r0.txt": "numpy==1.0.0"})


def test_the_number_of_comparisons_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files_read, "MOST_COMPARED", 10)
    files = {f"{number}.txt": "" for number in range(6)}
    assert len(list_files_read(("ls *.txt *.txt",), files, {})) == 6
    with pytest.raises(UsageError, match="too many patterns"):
        list_files_read(("ls 1*.txt 2*.txt",), files, {})
