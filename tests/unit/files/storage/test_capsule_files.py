"""The capsule in an output folder: on this machine, and as a tar for a host."""

from __future__ import annotations

import io
import os
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from riseml.files.storage.capsule_files import CapsuleFiles, pack_capsule_files, write_capsule_files
from riseml.model import Owner
from riseml.planning.launch import output_folder
from tests.unit.control.simulation import make_experiment, make_plan

ME = Owner("paul", os.geteuid(), os.getegid())
EXPERIMENT = replace(make_experiment(4, make_plan("train")), owner=ME)
FOLDER = output_folder(EXPERIMENT)
CAPSULE = CapsuleFiles("{}", b"code", (("record.yml", b"x: 1\n"),))


def read_tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_capsule_replaces_what_a_job_has_put_in_its_place(tmp_path: Path) -> None:
    write_capsule_files(tmp_path, EXPERIMENT, CapsuleFiles("older", b"code"))
    inside = tmp_path / FOLDER / ".riseml"
    (inside / "capsule.json").unlink()
    (inside / "capsule.json").symlink_to("/etc/passwd")
    (tmp_path / FOLDER / "model").write_text("of the job")
    write_capsule_files(tmp_path, EXPERIMENT, CapsuleFiles("{}", beside=CAPSULE.beside))
    assert not (inside / "capsule.json").is_symlink()
    assert read_tree(tmp_path / FOLDER) == {
        ".riseml/capsule.json": b"{}",
        ".riseml/project.tar": b"code",
        "record.yml": b"x: 1\n",
        "model": b"of the job",
    }


@pytest.mark.parametrize(("is_known", "mode"), [(False, 0o700), (True, 0o755)])
def test_a_folder_that_a_job_has_made_again_is_for_its_owner_alone(
    tmp_path: Path, *, is_known: bool, mode: int
) -> None:
    folder = tmp_path / FOLDER
    folder.mkdir(parents=True)
    folder.chmod(0o755)
    if is_known:
        (folder / ".riseml").mkdir(mode=0o700)
    write_capsule_files(tmp_path, EXPERIMENT, CAPSULE)
    assert folder.stat().st_mode & 0o777 == mode


def test_a_host_gets_the_same_files_for_the_same_owner(tmp_path: Path) -> None:
    owner = Owner("paul", 1234, 5678)
    data = pack_capsule_files(replace(EXPERIMENT, owner=owner), CAPSULE)
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        assert {(member.uid, member.gid) for member in tar} == {(1234, 5678)}
        assert tar.getmember(str(FOLDER / ".riseml")).mode == 0o700
        sent = {member.name: file.read() for member in tar if (file := tar.extractfile(member)) is not None}
    write_capsule_files(tmp_path, EXPERIMENT, CAPSULE)
    assert sent == read_tree(tmp_path)
