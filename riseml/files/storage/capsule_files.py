"""The capsule in an output folder, `.riseml`: capsule.json, and the project's files when they are small."""

from __future__ import annotations

import io
import os
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from riseml.base.records import dataclass
from riseml.files.storage.owned_folders import open_owned_folder, replace_file
from riseml.model import Experiment, Owner
from riseml.planning.launch import output_folder
from riseml.wire.capsules import CAPSULE_FILE, CAPSULE_FOLDER, CODE_FILE

_PRIVATE = 0o700


@dataclass(frozen=True, slots=True)
class CapsuleFiles:
    """What a capsule holds."""

    text: str  # text of capsule.json
    code: bytes | None = None  # the project archive; None: it stays as it is, or is not there
    beside: tuple[tuple[str, bytes], ...] = ()  # name and content of files of the output folder that are replaced

    def list_files(self) -> Iterator[tuple[str, bytes]]:
        """Yield name and content of each file."""
        if self.code is not None:
            yield CODE_FILE, self.code
        yield CAPSULE_FILE, self.text.encode()


def write_capsule_files(root: Path, experiment: Experiment, files: CapsuleFiles) -> None:
    """Write a capsule into the output folder on this machine, whatever a job has put in its place.

    Raises:
        EngineError: a part of the path is a link, or another user controls it (permanent).
        OSError: a file cannot be written.
    """
    owner = experiment.owner
    _close_new_folder(root, experiment)
    with open_owned_folder(root, output_folder(experiment) / CAPSULE_FOLDER, owner) as opened:
        for name, content in files.list_files():
            replace_file(opened, name, content, owner)
    if files.beside:
        with open_owned_folder(root, output_folder(experiment), owner) as opened:
            for name, content in files.beside:
                replace_file(opened, name, content, owner)


def _close_new_folder(root: Path, experiment: Experiment) -> None:
    """Give an output folder that a job has removed and made again the mode of the first one: for its owner alone.

    riseml's own files are missing in such a folder. A folder that has them keeps the mode that a job gave to it.
    """
    with open_owned_folder(root, output_folder(experiment), experiment.owner) as opened:
        mode = stat.S_IMODE(os.fstat(opened).st_mode)
        if mode & ~_PRIVATE and CAPSULE_FOLDER not in os.listdir(opened):
            os.fchmod(opened, mode & _PRIVATE)


def pack_capsule_files(experiment: Experiment, files: CapsuleFiles) -> bytes:
    """Return a capsule as a tar, for a host whose files the server cannot write; the output folder exists there."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        add_capsule_files(tar, output_folder(experiment), files, experiment.owner)
    return buffer.getvalue()


def add_capsule_files(tar: tarfile.TarFile, folder: PurePosixPath, files: CapsuleFiles, owner: Owner) -> None:
    """Add the folder of a capsule and its files to a tar, below the output folder."""
    entry = tarfile.TarInfo(str(folder / CAPSULE_FOLDER))
    entry.type = tarfile.DIRTYPE
    entry.mode = 0o700
    entry.uid = owner.uid
    entry.gid = owner.gid
    tar.addfile(entry)
    inside = ((f"{CAPSULE_FOLDER}/{name}", content) for name, content in files.list_files())
    for path, content in (*inside, *files.beside):
        entry = tarfile.TarInfo(str(folder / path))
        entry.size = len(content)
        entry.mode = 0o644
        entry.uid = owner.uid
        entry.gid = owner.gid
        tar.addfile(entry, io.BytesIO(content))
