"""Links below a folder: none that is made leads out, alone or through others, and none is followed on the way."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riseml.job_programs.folder_links import leads_inside, make_link
from riseml.job_programs.folder_paths import FileErrorKind, FilesError, encode_name


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "root" / "a" / "b").mkdir(parents=True)
    return tmp_path / "root"


@pytest.fixture
def root(folder: Path) -> Iterator[int]:
    opened = os.open(folder, os.O_RDONLY)
    yield opened
    os.close(opened)


@pytest.mark.parametrize(
    ("path", "target", "inside"),
    [
        ("last", "deep/w", True),
        ("ckpt/last", "../other/w", True),
        ("ckpt/last", "./../ckpt//w/", True),
        ("ckpt/last", "..", True),
        ("last", ".", True),
        ("last", "a b\nc%FF", True),
        ("last", "", False),
        ("last", "..", False),
        ("last", "/etc/passwd", False),
        ("last", "/", False),
        ("last", "%2Fetc", False),
        ("ckpt/last", "../../x", False),
        ("ckpt/last", "%2E%2E/../x", False),
        ("ckpt/last", "deep/../w", False),
        ("ckpt/last", "x%00y", False),
        ("..", "x", False),
    ],
)
def test_a_link_leads_inside_by_its_text_alone(path: str, target: str, *, inside: bool) -> None:
    assert leads_inside(path, target) is inside


_NAMES = st.sampled_from(["a", "b", "c", "..", "."])
_LINKS = st.lists(
    st.tuples(st.lists(_NAMES, min_size=1, max_size=3), st.lists(_NAMES, min_size=1, max_size=4)), max_size=6
)


@settings(max_examples=50, deadline=None)
@given(_LINKS)
def test_no_links_together_lead_out(
    tmp_path_factory: pytest.TempPathFactory, links: list[tuple[list[str], list[str]]]
) -> None:
    """As Linux follows them: every name of the tree, resolved, is in the tree."""
    folder = tmp_path_factory.mktemp("links") / "root"
    folder.mkdir()
    root = os.open(folder, os.O_RDONLY)
    try:
        for path, target in links:
            try:
                make_link(root, "/".join(path), "/".join(target))
            except FilesError:
                continue
    finally:
        os.close(root)
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            found = os.path.realpath(os.path.join(place, name))
            assert found == str(folder) or found.startswith(f"{folder}/"), (links, place, name)


def test_a_link_replaces_files_and_links_and_no_folder(root: int, folder: Path) -> None:
    assert (make_link(root, "new/er/last", "../x").target, os.readlink(folder / "new/er/last")) == ("../x", "../x")
    (folder / "file").write_text("x")
    for target in ("a", "a/b"):
        make_link(root, "file", target)
        assert os.readlink(folder / "file") == target
    with pytest.raises(FilesError) as caught:
        make_link(root, "a/b", "x")
    assert caught.value.trouble in (FileErrorKind.IS_FOLDER, FileErrorKind.EXISTS)
    odd = encode_name(b"\xff\n" + b"n" * 253)
    make_link(root, odd, odd)
    assert os.readlink(os.fsencode(folder) + b"/\xff\n" + b"n" * 253) == b"\xff\n" + b"n" * 253
    assert not [name for name in os.listdir(folder) if name.startswith(".riseml-part-")]


def test_a_link_on_the_way_is_not_followed(root: int, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (folder / "out").symlink_to(tmp_path / "outside")
    for path in ("out/last", "out/deep/last"):
        with pytest.raises(FilesError) as caught:
            make_link(root, path, "x")
        assert caught.value.trouble is FileErrorKind.LINK
    with pytest.raises(FilesError) as caught:
        make_link(root, "a/last", "../../outside")
    assert caught.value.trouble is FileErrorKind.OUTSIDE
    make_link(root, "out", "a")
    assert (os.readlink(folder / "out"), os.listdir(tmp_path / "outside")) == ("a", [])
