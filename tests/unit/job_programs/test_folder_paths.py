"""Paths below a folder: every name has one text, and no path leads out."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riseml.job_programs.folder_listing import list_page
from riseml.job_programs.folder_paths import FileErrorKind, FilesError, decode_name, encode_name, split_path
from tests.unit.job_programs.folder_files import fails, get


@settings(max_examples=50, deadline=None)
@given(st.binary(min_size=1, max_size=255).filter(lambda name: name not in (b".", b"..") and not {0, 47} & set(name)))
def test_every_name_has_one_text(name: bytes) -> None:
    assert split_path(f"a/{encode_name(name)}") == [b"a", name]
    assert decode_name(encode_name(name)) == name


@pytest.mark.parametrize("path", ["..", "a/../b", "/etc", "a//b", "./a", "a/", "a\0b", "%2e%2e", "a%2fb/..", "x" * 256])
def test_a_path_never_leads_out(path: str, root: int) -> None:
    with fails(FileErrorKind.BAD_PATH):
        list_page(root, path, None, 10, deep=True)


def test_an_escaped_slash_does_not_lead_out(root: int, folder: Path) -> None:
    (folder / "a").mkdir()
    assert split_path("a%2Fb") != [b"a%2Fb"]
    with pytest.raises(FilesError):
        get(root, "a%2F..%2F..%2Fetc%2Fpasswd")
