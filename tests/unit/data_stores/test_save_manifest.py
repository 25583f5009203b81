"""The manifest of a saved output, which every user of the store may have written."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from riseml.base.errors import EngineError
from riseml.data_stores import save_manifest
from riseml.data_stores.save_manifest import SavedFile, SaveManifest, read_manifest, write_manifest
from riseml.job_programs.folder_contents import PART

PLACE = "s3://runs/paul/toaster/4"


def file_named(path: str, key: str = "k") -> SavedFile:
    return SavedFile(path, 1, 1, executable=False, sha256="0" * 64, key=key)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b'{"format": 2}',
        *(
            write_manifest(SaveManifest("o", "e", "", 1, (file_named(path),)))
            for path in ("../x", "/etc/x", "a//b", ".", f"a/{PART}1")
        ),
        write_manifest(SaveManifest("o", "e", "", 1, (file_named("a", "../../other"),))),
        write_manifest(SaveManifest("o", "e", "", 1, (file_named("a"), file_named("a")))),
    ],
)
def test_a_forged_manifest_leads_nowhere(data: bytes) -> None:
    with pytest.raises(EngineError, match="is not a manifest of riseml"):
        read_manifest(data, PLACE)


@pytest.mark.parametrize("number", ["Infinity", "-Infinity", "NaN", "1e300", "1" + "0" * 40, "-1" + "0" * 40])
@pytest.mark.parametrize("name", ["size", "changed", "attempt"])
def test_a_manifest_with_a_number_that_no_disk_takes_leads_nowhere(name: str, number: str) -> None:
    text = write_manifest(SaveManifest("o", "e", "", 1, (file_named("a"),))).decode()
    with pytest.raises(EngineError, match="is not a manifest of riseml"):
        read_manifest(text.replace(f'"{name}": 1', f'"{name}": {number}').encode(), PLACE)


@pytest.mark.parametrize(("changed", "beyond"), [((1 << 63) * 10**9 - 1, 1), (-(1 << 63) * 10**9, -1), (-1, None)])
def test_the_times_of_a_manifest_are_those_that_the_system_takes(
    tmp_path: Path, changed: int, beyond: int | None
) -> None:
    """A file may be older than 1970."""
    file = replace(file_named("a"), changed=changed)
    (read,) = read_manifest(write_manifest(SaveManifest("o", "e", "", 1, (file,))), PLACE).files
    (tmp_path / "a").touch()
    os.utime(tmp_path / "a", ns=(read.changed, read.changed))  # no OverflowError
    if beyond is not None:
        far = replace(file, changed=changed + beyond)
        with pytest.raises(EngineError):
            read_manifest(write_manifest(SaveManifest("o", "e", "", 1, (far,))), PLACE)


def test_no_manifest_is_written_that_no_server_would_read(monkeypatch: pytest.MonkeyPatch) -> None:
    path = "/".join(["数" * 80] * 3)
    manifest = SaveManifest("o", "e", "", 1, (file_named(path, path),))
    data = write_manifest(manifest)
    assert len(data) < 1800, "each character takes its three bytes"
    monkeypatch.setattr(save_manifest, "LARGEST_MANIFEST", len(data))
    assert read_manifest(write_manifest(manifest), PLACE) == manifest
    monkeypatch.setattr(save_manifest, "LARGEST_MANIFEST", len(data) - 1)
    with pytest.raises(EngineError, match="names of the output's files are too long") as raised:
        write_manifest(manifest)
    assert raised.value.permanent


def test_a_manifest_with_more_files_than_an_output_has_leads_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    data = write_manifest(SaveManifest("o", "e", "", 1, (file_named("a"), file_named("b"))))
    assert len(read_manifest(data, PLACE).files) == 2
    monkeypatch.setattr(save_manifest, "MOST_FILES", 1)
    with pytest.raises(EngineError, match="is not a manifest of riseml"):
        read_manifest(data, PLACE)
