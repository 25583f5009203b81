"""Copy files out of a running job and into one, as a tar that `tar` in the job writes or reads.

Data from a job is not trusted: the strict reader of project archives reads it while it arrives, riseml writes it into a
new folder next to the target without following links, and renames the folder when it is complete. A job controls only
the content below the one name that the user has requested. What it sends beyond that is written nowhere, and no file is
begun that would not leave `_LEFT_FREE` bytes of the disk.
"""

from __future__ import annotations

import asyncio
import os
import posixpath
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from riseml.base.amounts import format_bytes
from riseml.base.errors import NotFound, Refused, RisemlError, TooLarge, UsageError
from riseml.base.records import dataclass
from riseml.base.stream_messages import Channel, ChannelData, CommandExit, CommandRequest
from riseml.client.exchange import Address
from riseml.client.stream_client import StreamConnection, command_path, open_stream
from riseml.files.archives.entries import ArchiveEntry, EntryKind
from riseml.files.archives.reader import read_content, read_entries
from riseml.files.archives.writer import END, pad_content, write_header
from riseml.files.project.unpacking import OpenFolder, unpack_entries

_LEFT_FREE = 64 << 20  # bytes that a copy leaves free on the disk
_PIECE = 256 * 1024  # bytes of a file that are read at once
_MOST_ERRORS = 4096  # bytes of the messages of `tar`
_MOST_SAID = 4096  # bytes that a job may print where one word, or nothing, is expected
_MISSING = 44  # exit codes; _CHANGED: tar's code when a file changed while tar read it
_NO_TAR = 45
_CHANGED = 1
_PACK = r"""
command -v tar >/dev/null 2>&1 || exit 45
cd "$1" 2>/dev/null || exit 44
[ -e "$2" ] || [ -L "$2" ] || exit 44
option=
case $(tar --help 2>&1) in *--hard-dereference*) option=--hard-dereference ;; esac
exec tar $option -cf - -- "$2"
"""
_UNPACK = r"""
command -v tar >/dev/null 2>&1 || exit 45
cd "$1" 2>/dev/null || exit 44
exec tar -xof -
"""
_LOOK = r"""
if [ -d "$1" ]; then echo folder; elif [ -e "$1" ]; then echo file; else echo none; fi
"""


@dataclass(frozen=True, slots=True)
class JobPath:
    """A path in a job."""

    job: str  # its ID
    path: str  # absolute, or below the job's working directory

    def __str__(self) -> str:
        return f"{self.job}:{self.path}"


def copy_out(address: Address, source: JobPath, target: Path, *, wants_folder: bool = False) -> Path:
    """Copy a file or a folder of a job; return where it is now.

    Args:
        address: where the server is.
        source: what to copy.
        target: an existing folder, into which it goes under its own name, or the new name.
        wants_folder: the target is a folder, even if it does not exist yet.

    Raises:
        NotFound: the job has no such file.
        Refused: a folder of this name exists already, or the job sent something that riseml does not take.
    """
    above, name = split_path(source.path)
    if wants_folder:
        _make_folder(target)
    final = target / name if target.is_dir() else target
    if final.is_dir() and not final.is_symlink():
        raise Refused(f"{final} is there already, and riseml replaces no folder", "name another target")
    with ExitStack() as stack:
        try:
            stage = Path(tempfile.mkdtemp(prefix=".riseml-cp-", dir=final.parent))
        except OSError as error:
            raise Refused(f"{final.parent} cannot be written: {error.strerror}", "name another target") from None
        stack.callback(shutil.rmtree, stage, ignore_errors=True)
        _receive_files(address, source, [_PACK, "sh", above, name], stage / "files")
        stage_file = stage / "files" / name
        if not os.path.lexists(stage_file):
            raise Refused(f"{source.job} did not send {name}", "is its `tar` the usual one?")
        stage_file.replace(final)
    return final


def copy_in(address: Address, source: Path, target: JobPath) -> JobPath:
    """Copy a file or a folder of this machine into a job; return where it is now.

    Raises:
        NotFound: there is no such file here, or no folder for it in the job.
        UsageError: it is neither a file nor a folder.
    """
    if not source.exists():
        raise NotFound(f"there is no {source}")
    kind = _ask_job(address, target, [_LOOK, "sh", target.path]).strip()
    if kind != b"folder" and target.path.endswith("/"):
        raise NotFound(f"{target.job} has no folder {target.path}", "make it with `riseml exec ... -- mkdir -p`")
    above, name = (target.path, _name_source(source)) if kind == b"folder" else split_path(target.path)
    try:
        _run_tar(address, target, [_UNPACK, "sh", above], _ShortAnswer(target).take, _pack(source.resolve(), name))
    except NotFound:
        raise NotFound(f"{target.job} has no folder {above}", "make it with `riseml exec ... -- mkdir -p`") from None
    return JobPath(target.job, posixpath.join(above, name))


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Refused(f"{folder} cannot be made a folder: {error.strerror}", "name another target") from None


def _name_source(source: Path) -> str:
    """Return the name that the user has typed, also of a link; of `.` and `..` the name of the folder."""
    return source.resolve().name if source.name in ("", "..") else source.name


def split_path(path: str) -> tuple[str, str]:
    """Return the folder and the last name of a path in a job.

    Raises:
        UsageError: it has no name of its own, such as `/` or `..`.
    """
    above, name = posixpath.split(path.rstrip("/"))
    if name in ("", ".", "..") or "\0" in path:
        raise UsageError(f"{path!r} names no file or folder of its own", "name one: 4.master:/output/model")
    return above or ".", name


class _PipedTar:
    """A tar that arrives over a pipe: it is read forwards only, and kept nowhere."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._at = 0

    def read(self, size: int, /) -> bytes:
        """Return `size` bytes; fewer at the end."""
        piece = self._file.read(size)
        self._at += len(piece)
        return piece

    def seek(self, position: int, /) -> None:
        """Skip what comes before a position."""
        while self._at < position and self.read(min(position - self._at, _PIECE)):
            continue


@dataclass(frozen=True, slots=True)
class _BoundedFiles:
    """The files of a tar, as long as the disk has room for them."""

    tar: _PipedTar
    folder: int  # an open one of the disk

    def read_files(self) -> Iterator[tuple[ArchiveEntry, Iterator[bytes]]]:
        """Yield each entry with its content.

        Raises:
            UsageError: it is not a plain tar archive, or is cut off.
            TooLarge: the disk has no room for a file.
        """
        for entry, at in read_entries(self.tar):
            disk = os.fstatvfs(self.folder)
            if entry.size > disk.f_bavail * disk.f_frsize - _LEFT_FREE:
                raise TooLarge(f"{entry.path} has {format_bytes(entry.size)}, and the disk has no room for that")
            yield entry, read_content(self.tar, at, entry.size)


def _receive_files(address: Address, source: JobPath, script: list[str], folder: Path) -> None:
    """Unpack what a job sends into a new folder, while it arrives.

    Raises:
        RisemlError: the job has no such path, or sent something that riseml does not take.
    """
    reader, writer = os.pipe()

    def send(piece: bytes) -> None:
        remainder = memoryview(piece)
        while remainder:
            remainder = remainder[os.write(writer, remainder) :]

    with ThreadPoolExecutor(1) as pool:
        unpacking = pool.submit(_unpack, reader, folder, source)
        try:
            _run_tar(address, source, script, send)
        except BrokenPipeError:  # it was refused
            unpacking.result()
        finally:
            os.close(writer)
        unpacking.result()


def _unpack(reader: int, folder: Path, source: JobPath) -> None:
    """Unpack what comes from a pipe into a new folder; close the pipe when it is refused."""
    folder.mkdir()
    with ExitStack() as stack:
        file = stack.enter_context(open(reader, "rb"))
        root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        stack.callback(os.close, root)
        try:
            unpack_entries(_BoundedFiles(_PipedTar(file), root), OpenFolder(root, stack), None)
        except TooLarge as error:
            raise Refused(f"{source} was not copied: {error.message}", "free some space, or copy a part") from None
        except UsageError as error:
            why = error.message.replace("the project's archive", "what it sent").replace(
                "the project", "what is copied"
            )
            raise Refused(
                f"{source} was not copied: {why}", "copy a part of it that has only files and folders"
            ) from None


def _pack(source: Path, name: str) -> Iterator[bytes]:
    """Yield a tar of a file or folder under a name; only files, folders and links are in it."""
    for path, entry in _list_entries(source, name):
        yield write_header(entry)
        if entry.kind is EntryKind.FILE:
            yield from _read_file(path, entry.size)
            yield pad_content(entry.size)
    yield END


def _list_entries(source: Path, name: str) -> Iterator[tuple[Path, ArchiveEntry]]:
    status = source.lstat()
    mtime = int(status.st_mtime)
    if source.is_symlink():
        yield source, ArchiveEntry(name, EntryKind.LINK, mtime=mtime, target=os.readlink(source))
    elif source.is_dir():
        yield source, ArchiveEntry(name, EntryKind.FOLDER, mtime=mtime)
        for inner in sorted(os.listdir(source)):
            yield from _list_entries(source / inner, f"{name}/{inner}")
    elif source.is_file():
        executable = bool(status.st_mode & 0o100)
        yield source, ArchiveEntry(name, EntryKind.FILE, status.st_size, mtime, executable=executable)


def _read_file(path: Path, size: int) -> Iterator[bytes]:
    """Yield exactly `size` bytes of a file, so that a growing file is copied with its earlier size.

    Raises:
        Refused: the file has become shorter.
    """
    with path.open("rb") as file:
        while size > 0:
            piece = file.read(min(size, _PIECE))
            if not piece:
                raise Refused(f"{path} changed while it was copied", "copy it again when nothing writes to it")
            size -= len(piece)
            yield piece


class _ShortAnswer:
    """Receives the short output of a script, up to a limit: the job's own programs run it, and may print anything."""

    def __init__(self, place: JobPath) -> None:
        self._place = place
        self.said = bytearray()

    def take(self, content: bytes) -> None:
        """Keep a piece.

        Raises:
            Refused: it is too much.
        """
        if len(self.said) + len(content) > _MOST_SAID:
            raise Refused(
                f"{self._place} was not copied: the job answers with more than {_MOST_SAID // 1024} KiB",
                f"are `sh` and `tar` the usual ones? `riseml exec {self._place.job} -- ls -l /bin/sh` shows one",
            )
        self.said += content


def _ask_job(address: Address, place: JobPath, script: list[str]) -> bytes:
    answer = _ShortAnswer(place)
    _run_tar(address, place, script, answer.take)
    return bytes(answer.said)


def _run_tar(
    address: Address,
    place: JobPath,
    script: list[str],
    sink: Callable[[bytes], object],
    pieces: Iterable[bytes] = (),
) -> None:
    """Run a script in a job with `pieces` as its input and `sink` for its output.

    Raises:
        NotFound: the path does not exist there.
        RisemlError: it failed.
    """
    code, errors = asyncio.run(_run_script(address, place.job, ("/bin/sh", "-c", *script), sink, pieces))
    words = errors.decode("utf-8", "replace").strip().splitlines()
    grows = script[0] is _PACK and code == _CHANGED and any("changed" in line for line in words)
    if code == 0 or grows:  # a log that grows is copied as it was when tar read it
        return
    if code == _MISSING:
        raise NotFound(f"{place.job} has no {place.path}", f"`riseml exec {place.job} -- ls` shows what is there")
    if code == _NO_TAR:
        raise Refused(f"the image of {place.job} has no tar", "add it to `install`, or use `riseml exec ... cat`")
    raise RisemlError(f"{place} was not copied: {words[-1] if words else f'tar ended with exit code {code}'}")


async def _run_script(
    address: Address,
    job: str,
    command: tuple[str, ...],
    sink: Callable[[bytes], object],
    pieces: Iterable[bytes],
) -> tuple[int, bytes]:
    """Return the exit code and the end of standard error."""
    async with open_stream(address, command_path(job), CommandRequest(command)) as stream:
        sending = asyncio.create_task(_send_pieces(stream, pieces))
        try:
            return await _receive_output(stream, sink, sending)
        finally:
            sending.cancel()


async def _send_pieces(stream: StreamConnection, pieces: Iterable[bytes]) -> None:
    for piece in pieces:
        await stream.send_input(piece)
    await stream.end_input()


async def _receive_output(
    stream: StreamConnection, sink: Callable[[bytes], object], sending: asyncio.Task[None]
) -> tuple[int, bytes]:
    errors = b""
    receiving = asyncio.ensure_future(stream.receive())
    try:
        while True:
            await asyncio.wait(
                {receiving, sending} if not sending.done() else {receiving}, return_when="FIRST_COMPLETED"
            )
            if sending.done() and sending.exception() is not None:
                await sending  # a file here cannot be read
            if not receiving.done():
                continue
            match receiving.result():
                case ChannelData(channel, content):
                    if channel is Channel.OUTPUT:
                        sink(content)
                    else:
                        errors = (errors + content)[-_MOST_ERRORS:]
                    await stream.grant(len(content))
                case CommandExit(code):
                    return code, errors
                case _:
                    pass
            receiving = asyncio.ensure_future(stream.receive())
    finally:
        receiving.cancel()
