"""Any person may have written a capsule in a folder: an invalid one is refused with one sentence, and nothing is
incomplete."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from riseml.base.errors import Conflict, NotFound, Refused, RisemlError, UsageError
from riseml.capsules.checkout import unpack_code
from riseml.capsules.folder import find_capsule_folder, read_archive, read_capsule, read_project_file
from riseml.wire.capsules import MOST_CODE
from tests.support.archives import find_digest, pack
from tests.unit.capsules.capsule_code import ARCHIVE


def test_a_capsule_is_found_by_its_folder_its_file_and_its_output(folder: Path, tmp_path: Path) -> None:
    for text in ("output", "output/", "output/.riseml", "output/.riseml/capsule.json", str(folder)):
        found = find_capsule_folder(tmp_path, text)
        assert found is not None
        assert found.resolve() == folder
    for text in ("4", "144.3", "paul.4"):
        assert find_capsule_folder(tmp_path, text) is None, "it is an ID"
    for text in ("baseline", "lr warmup"):
        assert find_capsule_folder(tmp_path, text) is None, "it may be a name"
    (tmp_path / "empty").mkdir()
    for text in ("empty", "outputs/", "./outputs", ".", ""):
        with pytest.raises(NotFound):
            find_capsule_folder(tmp_path, text)


def test_a_file_that_is_not_a_capsule_is_refused(folder: Path) -> None:
    file = folder / "capsule.json"
    good = json.loads(file.read_text())
    spoilers: list[tuple[Callable[[], object | None], type[RisemlError], str]] = [
        (lambda: file.write_text("{"), UsageError, "not JSON"),
        (lambda: file.write_text("[" * 200_000), UsageError, "not JSON"),
        (lambda: file.write_text("[]"), UsageError, "is not a capsule"),
        (lambda: file.write_text(json.dumps(good | {"jobs": 7})), UsageError, r"\.jobs"),
        (lambda: file.write_text(json.dumps(good | {"version": 2})), UsageError, "later riseml"),
        (lambda: file.write_text(" " * (1 << 24) + "1"), UsageError, "larger than"),
        (lambda: os.mkfifo(file), UsageError, "not a regular file"),
        (lambda: file.symlink_to("/etc/passwd"), Refused, "cannot read"),
    ]
    for spoil, kind, words in spoilers:
        file.unlink(missing_ok=True)
        spoil()
        with pytest.raises(kind, match=words):
            read_capsule(folder)


def test_only_the_files_that_the_capsule_names_are_its_code(folder: Path, tmp_path: Path) -> None:
    digest = find_digest(ARCHIVE)
    archive = read_capsule(folder).find_archive()
    assert archive is not None
    assert read_project_file(archive, "riseml.yml") == "project: x\n"
    assert unpack_code(archive, digest, tmp_path / "new" / "code") == 2
    assert (tmp_path / "new" / "code" / "below" / "train.py").read_text() == "print(1)\n"
    with pytest.raises(Conflict):
        unpack_code(archive, digest, tmp_path / "new" / "code")
    archive.write_bytes(pack({"riseml.yml": "project: y\n"}))
    assert read_capsule(folder).find_archive() is None
    with pytest.raises(Refused, match="other files"):
        unpack_code(archive, digest, tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_an_archive_that_no_capsule_holds_is_not_read(folder: Path) -> None:
    os.truncate(folder / "project.tar", MOST_CODE)
    assert len(read_archive(folder / "project.tar")) == MOST_CODE
    os.truncate(folder / "project.tar", 1 << 40)
    with pytest.raises(UsageError, match="larger than a capsule's can be"):
        read_capsule(folder).find_archive()
    with pytest.raises(UsageError, match="larger than a capsule's can be"):
        read_archive(folder / "project.tar")
