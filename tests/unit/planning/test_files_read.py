"""Which files install steps may read, and the bounds of that search."""

from __future__ import annotations

import pytest

from riseml.base.errors import UsageError
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


LIBRARY = dict.fromkeys(("mylib/setup.cfg", "dev.txt", "requirements.txt", "src/train.py"), "")
EVERYTHING = tuple(sorted(LIBRARY))
COMMON_STEPS = {
    "pip install -e .[dev]": EVERYTHING,
    'pip install ".[train]"': EVERYTHING,
    "pip install .[dev,test]": EVERYTHING,
    "pip install -e.": EVERYTHING,
    "pip install './mylib[gpu]'": ("mylib/setup.cfg",),
    "pip install -rrequirements.txt -cdev.txt": ("dev.txt", "requirements.txt"),
    "poetry install": EVERYTHING,
    "pip install uv && UV_PROJECT_ENVIRONMENT=/usr/local uv sync": EVERYTHING,
    "python -m pipenv install --system": EVERYTHING,
    "pdm install": EVERYTHING,
    "pip install poetry uv": (),
    "pip install uvicorn[standard] -e": (),
}


@pytest.mark.parametrize("step", COMMON_STEPS)
def test_common_steps_read_the_project_that_they_install(step: str) -> None:
    assert list_files_read((step,), LIBRARY, {}) == COMMON_STEPS[step]


LINES = {
    "-rdev.txt": ("dev.txt", "requirements.txt"),
    "numpy\n./mylib": ("mylib/setup.cfg", "requirements.txt"),
    "./mylib[gpu] ; python_version > '3'": ("mylib/setup.cfg", "requirements.txt"),
    "--find-links mylib": ("mylib/setup.cfg", "requirements.txt"),
    ".": EVERYTHING,
    "-e .[dev]": EVERYTHING,
    "src\nmylib>=2\nhttps://host/mylib\n# ./mylib": ("requirements.txt",),
}


@pytest.mark.parametrize("text", LINES)
def test_a_requirement_file_reads_the_local_projects_in_it(text: str) -> None:
    found = list_files_read(("pip install -r requirements.txt",), LIBRARY, {"requirements.txt": text})
    assert found == LINES[text]


def test_local_projects_are_beside_a_requirement_file_or_where_pip_runs() -> None:
    files = dict.fromkeys(("reqs/all.txt", "a/setup.py", "reqs/b/setup.py", "c.py"), "")
    found = list_files_read(("pip install -r reqs/all.txt",), files, {"reqs/all.txt": "./a\n-e b\n"})
    assert found == ("a/setup.py", "reqs/all.txt", "reqs/b/setup.py")


def test_a_link_leads_to_the_file_or_folder_that_is_read() -> None:
    files = {"requirements.txt": "link:reqs/base.txt", "reqs/base.txt": "", "reqs/more.txt": "", "dev.txt": ""}
    texts = {"reqs/base.txt": "-r more.txt\n-c dev.txt"}
    steps = ("pip install -r requirements.txt",)
    assert list_files_read(steps, files, texts) == ("dev.txt", "reqs/base.txt", "reqs/more.txt", "requirements.txt")
    files = {"libs": "link:shared", "shared/a/setup.py": "", "shared/a/b.py": "link:../../b.py", "b.py": "", "c.py": ""}
    assert list_files_read(("pip install libs/a",), files, {}) == ("b.py", "libs", "shared/a/b.py", "shared/a/setup.py")


def test_links_in_a_circle_and_below_themselves_end(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"a": "link:b", "b": "link:a", "c": "link:c/c", "d.txt": ""}
    assert list_files_read(("ls a c",), files, {}) == ("a", "b", "c")
    monkeypatch.setattr(files_read, "MOST_LINKS", 10)
    with pytest.raises(UsageError, match="more than 10 links"):
        list_files_read(("ls c",), files, {})
