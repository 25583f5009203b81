"""Addresses of files as users type them."""

from __future__ import annotations

import pytest

from riseml.base.errors import UsageError
from riseml.cli.files.addresses import parse_storage_address


@pytest.mark.parametrize(
    ("text", "of", "path"),
    [
        ("data://", "", ""),
        ("data://mnist/a b/", "", "mnist/a b"),
        ("output://4", "4", ""),
        ("output://4.2/x%", "4.2", "x%25"),
        ("output://paul/toaster/4/model", "4", "model"),
        ("output://baseline/a/b", "baseline", "a/b"),
        ("output://lr warmup.2", "lr warmup.2", ""),
    ],
)
def test_an_address_names_a_storage_and_a_path(text: str, of: str, path: str) -> None:
    found = parse_storage_address(text)
    assert found is not None
    assert (found.place.of, found.path) == (of, path)


@pytest.mark.parametrize(
    ("text", "wants_folder"), [("data://", True), ("data://x", False), ("data://x/", True), ("output://4", True)]
)
def test_a_whole_storage_is_a_folder_also_before_anything_is_in_it(text: str, *, wants_folder: bool) -> None:
    address = parse_storage_address(text)
    assert address is not None
    assert address.wants_folder == wants_folder


@pytest.mark.parametrize("text", ["s3://bucket", "output://", "output:///x", "output://x/../z", "data://a/../b"])
def test_invalid_storage_addresses_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_storage_address(text)
    assert parse_storage_address("4.master:/x") is parse_storage_address("./data") is None
