"""A project folder: find it, list what belongs to it, pack it. No network; nothing is written.

What belongs to a project is what git would track: `.git` stays out, and so does what `.gitignore` and `.risemlignore`
name (read in this order, in every folder; the deeper and the later rule wins). The folders above count too, up
to the root of the git repository. Empty folders go along, for a program may want to write there.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from riseml.errors import NotFound, RisemlError, UsageError

if TYPE_CHECKING:
    from riseml.ignore import Rules

CONFIG = "riseml.yml"
DEFAULT_LIMIT = 2**30
LIMIT_VARIABLE = "RISEML_SYNC_LIMIT"

_CHUNK = 2**18
_NAME = re.compile(r"^project:[ \t]+([\"']?)([A-Za-z0-9_.-]+)\1[ \t]*(?:#.*)?\r?$", re.MULTILINE)
_NAMED = 5  # how many paths a message names


@dataclass(frozen=True, slots=True)
class Project:
    """A folder and its riseml.yml."""

    folder: Path
    file: Path


@dataclass(frozen=True, slots=True)
class Item:
    """One file, symbolic link or empty folder. `path` is relative, with `/`; odd bytes in it are surrogate escapes.

    `kind` is "file", "link" or "folder"; `content` the SHA-256 (hex) of a file, `target` where a link points.
    """

    path: str
    kind: str
    size: int = 0
    mtime: int = 0
    executable: bool = False
    target: str = ""
    content: str = ""


@dataclass(frozen=True, slots=True)
class Listing:
    """What a project consists of, its files not yet read."""

    folder: Path
    items: tuple[Item, ...]

    @property
    def count(self) -> int:
        """How many files and links there are."""
        return sum(item.kind != "folder" for item in self.items)

    @property
    def size(self) -> int:
        """Bytes in all files."""
        return sum(item.size for item in self.items)


@dataclass(frozen=True, slots=True)
class Snapshot(Listing):
    """What a project consists of at one moment; `digest` names the content."""

    digest: str


def find_project(folder: Path, file: Path | None = None) -> Project:
    """The project in `folder`, or the one of `file` (a riseml.yml under any name, or the folder that holds one).

    Raises:
        NotFound: there is none; the hint says what to do.
    """
    wanted = folder / (file or CONFIG)
    if file is not None and wanted.is_dir():
        wanted = wanted / CONFIG
    if wanted.is_file():
        return Project(wanted.absolute().parent, wanted.absolute())
    if file is not None:
        there_is = f"there is no {CONFIG} in {file}" if (folder / file).is_dir() else f"there is no file {file}"
        message = f"{file} is no regular file" if wanted.exists() else there_is
        raise NotFound(message, "give the path of a riseml.yml; `riseml init` writes one")
    raise NotFound(f"there is no {CONFIG} in {folder}", _where_else(folder))


def read_config(project: Project) -> str:
    """The text of the riseml.yml.

    Raises:
        UsageError: it cannot be read, or it is not UTF-8.
    """
    try:
        return project.file.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"cannot read {project.file}: {error.strerror}", "check its permissions") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{project.file}:{line}: this is not UTF-8 text", "save the file as UTF-8") from None


def find_name(config: str) -> str | None:
    """The project's name as most files say it, whatever the rest of the file is; None: YAML has to be read."""
    found = _NAME.findall(config)
    return str(found[0][1]) if len(found) == 1 else None


def format_size(size: float) -> str:
    """`5.7 MB`: decimal units, as file managers show them."""
    if size < 1000:
        return f"{size:.0f} B"
    for unit in ("KB", "MB", "GB"):
        size /= 1000
        if size < 999.95:
            return f"{size:.1f} {unit}"
    return f"{size / 1000:.1f} TB"


def list_files(folder: Path, limit: int = DEFAULT_LIMIT) -> Listing:
    """Everything that belongs to the project, no file read.

    Raises:
        UsageError: something can not be sent, or it is more than `limit` bytes.
    """
    items = collect(folder)
    _check_limit(items, limit)
    return Listing(folder, items)


def take_snapshot(listing: Listing) -> Snapshot:
    """Read the whole project once and name its content.

    The digest is the SHA-256 of one record an item, sorted by the bytes of the path: kind, path, `x` or `-`, and the
    target of a link or the SHA-256 (hex) of a file, each followed by a NUL byte.

    Raises:
        UsageError: a file cannot be read, or is no longer what it was.
    """
    from hashlib import sha256

    folder = listing.folder
    items = tuple(replace(item, content=_hash(folder, item)) if item.kind == "file" else item for item in listing.items)
    digest = sha256()
    for item in items:
        fields = (item.kind, item.path, "x" if item.executable else "-", item.target or item.content)
        digest.update(b"".join(os.fsencode(field) + b"\0" for field in fields))
    return Snapshot(folder, items, digest.hexdigest())


def collect(folder: Path) -> tuple[Item, ...]:
    """Everything that belongs to the project, sorted by the bytes of the path, files not yet read.

    Raises:
        UsageError: links that leave the project, things that are no file, folder or link, unreadable ones; all named.
    """
    refused: list[str] = []
    items = sorted(_walk(folder, refused), key=lambda item: os.fsencode(item.path))
    if refused:
        raise UsageError(
            f"the project cannot be synced: {_name_some(refused)}",
            "remove what is named here, or add it to .risemlignore; a link must be relative and stay in the project",
        )
    return tuple(items)


def pack(snapshot: Snapshot) -> Iterator[bytes]:
    """An uncompressed tar of the snapshot in pieces; the same snapshot gives the same bytes.

    Raises:
        UsageError: a file is no longer what it was when the snapshot was taken.
    """
    held = bytearray()
    for piece in _records(snapshot):
        held += piece
        if len(held) >= _CHUNK:
            yield bytes(held)
            held.clear()
    yield bytes(held)


def _where_else(folder: Path) -> str:
    for depth, parent in enumerate(folder.absolute().parents, start=1):
        if os.path.isfile(parent / CONFIG):
            above = "/".join([".."] * depth)
            return f"there is one in {above}: go there with `cd {above}`, or add `-f {above}/{CONFIG}`"
    return f"go to your project's folder, or write a {CONFIG} here with `riseml init`"


def _name_some(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _check_limit(items: tuple[Item, ...], limit: int) -> None:
    size = sum(item.size for item in items)
    if size <= limit:
        return
    largest = sorted(items, key=lambda item: -item.size)[:_NAMED]
    names = ", ".join(f"{show_path(item.path)} ({format_size(item.size)})" for item in largest)
    raise UsageError(
        f"the project has {format_size(size)}, more than the limit of {format_size(limit)}; nothing was sent. "
        f"The largest files: {names}",
        f"name what the jobs do not need in .risemlignore, put data under /data, or raise {LIMIT_VARIABLE}",
    )


def show_path(path: str) -> str:
    """A path as a person can read it: on one line, odd bytes escaped."""
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return text if text.isprintable() else repr(text)


def _walk(folder: Path, refused: list[str]) -> Iterator[Item]:
    """All items, in no order; what cannot be sent is added to `refused`."""
    from riseml.ignore import is_ignored, read_rules

    top, chain = _rules_above(folder)
    real = os.path.realpath(folder)
    todo = [("", chain)]
    while todo:
        at, above = todo.pop()
        try:
            with os.scandir(folder / at) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            refused.append(f"{show_path(at or '.')} ({error.strerror})")
            continue
        if at and not found:
            yield Item(at, "folder")
        rules = (*above, *read_rules(os.fsencode(folder / at), _below(top, os.fsencode(at))))
        for entry in found:
            path = f"{at}/{entry.name}" if at else entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            if entry.name == ".git" or is_ignored(rules, _below(top, os.fsencode(path)), is_folder=is_folder):
                continue
            if is_folder:
                todo.append((path, rules))
            elif (item := _look(real, folder, path, refused)) is not None:
                yield item


def _look(real: str, folder: Path, path: str, refused: list[str]) -> Item | None:
    try:
        seen = os.lstat(folder / path)
        if stat.S_ISREG(seen.st_mode):
            if not os.access(folder / path, os.R_OK, effective_ids=True):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            executable = bool(seen.st_mode & stat.S_IXUSR)
            return Item(path, "file", seen.st_size, max(0, int(seen.st_mtime)), executable)
        if stat.S_ISLNK(seen.st_mode):
            target = os.readlink(folder / path)
            if not _leaves(real, folder, path, target):
                return Item(path, "link", mtime=max(0, int(seen.st_mtime)), target=target)
            refused.append(f"{show_path(path)} (a link to {show_path(target)}, outside the project)")
        else:
            refused.append(f"{show_path(path)} (a {_SPECIAL.get(stat.S_IFMT(seen.st_mode), 'special file')})")
    except OSError as error:
        refused.append(f"{show_path(path)} ({error.strerror})")
    return None


_SPECIAL = {stat.S_IFSOCK: "socket", stat.S_IFIFO: "named pipe", stat.S_IFCHR: "device", stat.S_IFBLK: "device"}


def _leaves(real: str, folder: Path, path: str, target: str) -> bool:
    """True when a link would point outside: by its text, or by the links that it passes through."""
    text = os.path.normpath(os.path.join(os.path.dirname(path), target))
    if os.path.isabs(target) or text == ".." or text.startswith("../"):
        return True
    end = os.path.realpath(folder / path)
    return end != real and not end.startswith(real.rstrip("/") + "/")


def _read(folder: Path, item: Item) -> Iterator[bytes]:
    """The content, exactly `item.size` bytes of it."""
    try:
        # A file that became a link or a pipe since it was listed must neither lead outside nor block.
        handle = os.open(folder / item.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(handle, "rb", buffering=0) as file:
            left = item.size
            while left and (piece := file.read(min(left, _CHUNK))):
                left -= len(piece)
                yield piece
            if left or file.read(1):
                raise _changed(item)
    except OSError as error:
        if error.errno in _NO_LONGER:
            raise _changed(item) from None
        raise UsageError(
            f"cannot read {show_path(item.path)}: {error.strerror}",
            "make it readable, or add it to .risemlignore if the jobs do not need it",
        ) from None


_NO_LONGER = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO, errno.EISDIR})
"""What a file answers that was removed, or became something else, since it was listed."""


def _changed(item: Item) -> RisemlError:
    return UsageError(f"{show_path(item.path)} changed while the project was being synced", "run the command again")


def _hash(folder: Path, item: Item) -> str:
    from hashlib import sha256

    content = sha256()
    for piece in _read(folder, item):
        content.update(piece)
    return content.hexdigest()


def _records(snapshot: Snapshot) -> Iterator[bytes]:
    import tarfile
    from hashlib import sha256

    types = {"file": tarfile.REGTYPE, "link": tarfile.SYMTYPE, "folder": tarfile.DIRTYPE}
    for item in snapshot.items:
        head = tarfile.TarInfo(item.path)
        head.type, head.size, head.mtime, head.linkname = types[item.kind], item.size, item.mtime, item.target
        head.mode = 0o755 if item.executable or item.kind == "folder" else 0o644
        # GNU, not PAX: names stay the bytes that they are.
        yield head.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")
        if item.kind != "file":
            continue
        content = sha256()
        for piece in _read(snapshot.folder, item):
            content.update(piece)
            yield piece
        if content.hexdigest() != item.content:
            raise _changed(item)
        yield bytes(-item.size % tarfile.BLOCKSIZE)
    yield bytes(2 * tarfile.BLOCKSIZE)


def _below(top: bytes, path: bytes) -> bytes:
    return b"/".join(part for part in (top, path) if part)


def _rules_above(folder: Path) -> tuple[bytes, tuple[Rules, ...]]:
    """The project's path inside its git repository, and the rules of the folders above it."""
    from riseml.ignore import is_ignored, read_rules

    folder = folder.absolute()
    top = next((place for place in (folder, *folder.parents) if os.path.exists(place / ".git")), folder)
    inside = os.fsencode(folder.relative_to(top)) if folder != top else b""
    chain: tuple[Rules, ...] = ()
    parts = inside.split(b"/") if inside else []
    for depth in range(len(parts)):
        base = b"/".join(parts[:depth])
        chain = (*chain, *read_rules(os.path.join(os.fsencode(top), base), base))
        if is_ignored(chain, b"/".join(parts[: depth + 1]), is_folder=True):
            return b"", ()  # git ignores the whole project: its own rules are all that can help here
    return inside, chain
