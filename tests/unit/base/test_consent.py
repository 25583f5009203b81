"""What the user agreed to is kept in one private file, and anything odd in its place counts as no consent."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from riseml.base.consent import FILE, Consent, PassedVariable, read_consent, record_processes, record_variables
from riseml.base.errors import Refused

ONE = PassedVariable("/home/ann/cloned", "toaster", "API_TOKEN")


def test_each_yes_is_kept_beside_the_others(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert read_consent(home) == Consent()
    record_variables(home, [ONE])
    record_processes(home)
    assert read_consent(home) == Consent(processes=True, variables=frozenset([ONE]))
    assert [path.name for path in home.iterdir()] == [FILE]
    assert (stat.S_IMODE(home.stat().st_mode), stat.S_IMODE((home / FILE).stat().st_mode)) == (0o700, 0o600)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"processes": true}', '{"processes": 1, "variables": []}', "[" * 10**5]
)
def test_a_file_that_riseml_did_not_write_is_not_consent(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    assert read_consent(tmp_path) == Consent()


@pytest.mark.parametrize("kind", ["link", "folder", "pipe", "writable"])
def test_a_file_that_another_user_could_have_made_is_not_consent(tmp_path: Path, kind: str) -> None:
    record_processes(tmp_path)
    file = tmp_path / FILE
    kept = tmp_path / "kept"
    file.rename(kept)
    match kind:
        case "link":
            file.symlink_to(kept)
        case "folder":
            file.mkdir()
        case "pipe":
            os.mkfifo(file)
        case _:
            kept.rename(file).chmod(0o666)
    assert read_consent(tmp_path) == Consent()


def test_a_home_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Refused, match="cannot be kept"):
        record_processes(tmp_path / "file")
