"""Read a capsule from a folder. Any person may have written it: sizes are bounded, the schema is checked, and links are
not followed."""

from __future__ import annotations

import json
import os
import stat
from importlib import resources
from pathlib import Path
from typing import Any, BinaryIO, cast

from riseml import wire
from riseml.base.errors import NotFound, Refused, UsageError
from riseml.base.names import parse_id
from riseml.base.records import dataclass
from riseml.files.archives.digest import digest_entries
from riseml.files.archives.entries import EntryKind
from riseml.files.archives.reader import read_content, read_entries
from riseml.wire.capsules import CAPSULE_FILE, CAPSULE_FOLDER, CODE_FILE, MOST_CODE

_MOST_BYTES = 1 << 24  # largest capsule.json
_LONGEST_CONFIG = 1 << 20  # bytes of a riseml.yml


@dataclass(frozen=True, slots=True)
class CapsuleInFolder:
    """A capsule and where it is."""

    folder: Path
    capsule: wire.Capsule

    def find_archive(self) -> Path | None:
        """Return the archive with the project's files; None when it is missing, or has other files than the capsule
        names.

        Raises:
            UsageError: it is not a plain tar, or larger than a capsule's can be.
        """
        path = self.folder / CODE_FILE
        if not path.is_file():
            return None
        _check_size(path, path.stat().st_size)
        with path.open("rb") as file:
            return path if compute_digest(file) == self.capsule["code"]["digest"] else None


def find_capsule_folder(folder: Path, text: str) -> Path | None:
    """Return the folder of the capsule that a user has named by a path; None: the text is an ID, a name or a tag.

    Args:
        folder: the working directory.
        text: `./output/.riseml`, the output folder above it, the file capsule.json, or an ID such as `4`.
    """
    if is_id(text):
        return None
    place = folder / text
    for candidate in (place, place / CAPSULE_FOLDER, place.parent):
        if (candidate / CAPSULE_FILE).is_file() and (candidate != place.parent or place.name == CAPSULE_FILE):
            return candidate
    if "/" not in text and text not in ("", ".", "..") and not place.exists():
        return None
    raise NotFound(f"there is no {CAPSULE_FILE} in {text}", f"name the {CAPSULE_FOLDER} of an output, or an ID")


def is_id(text: str) -> bool:
    """Return True for a text that is the ID of an experiment, and so is not a path."""
    try:
        parse_id(text)
    except UsageError:
        return False
    return True


def read_capsule(folder: Path) -> CapsuleInFolder:
    """Return the capsule of a folder.

    Raises:
        UsageError: it is not a capsule, or one of a later version.
        Refused: it cannot be read.
    """
    path = folder / CAPSULE_FILE
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UsageError(f"{path} is not a regular file")
            text = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise Refused(f"cannot read {path}: {error.strerror}") from None
    if len(text) > _MOST_BYTES:
        raise UsageError(f"{path} is larger than a capsule can be", "at most 16 MiB")
    try:
        content: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not JSON: {str(error)[:200]}") from None
    _check_capsule(path, content)
    return CapsuleInFolder(folder, cast("wire.Capsule", content))


def read_archive(path: Path) -> bytes:
    """Return the bytes of the archive of a capsule.

    Raises:
        UsageError: it is larger than a capsule's can be.
    """
    with path.open("rb") as file:
        archive = file.read(MOST_CODE + 1)
    _check_size(path, len(archive))
    return archive


def compute_digest(file: BinaryIO) -> str:
    """Return the digest of a project from its archive.

    Raises:
        UsageError: it is not a plain tar.
    """
    from hashlib import sha256

    named = []
    for entry, at in read_entries(file):
        content = sha256()
        if entry.kind is EntryKind.FILE:
            for piece in read_content(file, at, entry.size):
                content.update(piece)
        named.append((entry, content.hexdigest() if entry.kind is EntryKind.FILE else ""))
    return digest_entries(named)


def read_project_file(archive: Path, name: str) -> str:
    """Return the text of a file in an archive; empty when it has no file of this name."""
    with archive.open("rb") as file:
        for entry, at in read_entries(file):
            if entry.path == name and entry.kind is EntryKind.FILE and entry.size <= _LONGEST_CONFIG:
                return b"".join(read_content(file, at, entry.size)).decode("utf-8", "replace")
    return ""


def _check_size(path: Path, size: int) -> None:
    if size > MOST_CODE:
        raise UsageError(f"{path} is larger than a capsule's can be", f"at most {MOST_CODE >> 20} MiB")


def _check_capsule(path: Path, content: Any) -> None:
    from jsonschema import Draft202012Validator

    if isinstance(content, dict) and isinstance(content.get("version"), int) and content["version"] > 1:
        raise UsageError(f"{path} is of version {content['version']}, which a later riseml wrote", "update riseml")
    error = next(Draft202012Validator(_load_schema()).iter_errors(content), None)
    if error is not None:
        where = "".join(f".{part}" for part in error.absolute_path)
        raise UsageError(
            f"{path} is not a capsule: {where or 'it'}: {error.message[:200]}", "see `riseml docs repeating`"
        )


def _load_schema() -> Any:
    name = "capsule.schema.json"
    packaged = resources.files("riseml").joinpath("schemas", name)
    if packaged.is_file():
        return json.loads(packaged.read_text(encoding="utf-8"))
    return json.loads((Path(__file__).parents[2] / "schemas" / name).read_text(encoding="utf-8"))
