"""What a job has written into its container, read while the container has ended and is not removed.

The shell around the job (`job_programs.group_shell`) lists the files at its end. One request for the size of this list
is all that a job without files costs: the engine needs seconds to compare a container with its image, and a tenth of a
second to make any archive. Without the list (the job was killed, or its image has no `find`), riseml reads the archives
of the working folder and of the home folder.

The list and the archives come from a job, and nothing that they say leads elsewhere: the engine resolves every path in
the container.
"""

from __future__ import annotations

import calendar
import io
import re
import tarfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from typing import IO, Any, cast

import docker
from docker.errors import NotFound
from docker.utils import decode_json_header

from riseml.base.amounts import format_bytes
from riseml.base.records import dataclass
from riseml.executors.base import NotThere
from riseml.executors.docker.containers import container_name
from riseml.executors.docker.project_archive import WORKING_FOLDER
from riseml.executors.logs.timestamps import to_nanoseconds
from riseml.executors.transports.engine_client import Engine, raise_for_refusal
from riseml.executors.written_files import (
    MOST_LISTED,
    Unread,
    WrittenFile,
    WrittenRequest,
    is_cache,
    is_home_cache,
    read_path,
)
from riseml.files.archives.entries import ArchiveEntry, EntryKind
from riseml.job_programs.folder_paths import FilesError, encode_name, show_name, split_path
from riseml.job_programs.group_shell import HOME_FOLDER, LISTING, LISTING_END
from riseml.spec.scalars.output_patterns import OutputPattern, PatternPlace

MOST_SCANNED = 256 << 20
"""Bytes of files that are skipped in the archive of a working folder without a list."""

MOST_READ = 256 << 30
"""Bytes of all archives of one container that are read. An engine sends the hole of a sparse file as zeros: a job can
make terabytes of them in a moment.
"""

_LONGEST_LIST = 16 << 20  # bytes
_MOST_FETCHES = 8  # archives; a job with more folders at the top has the whole working folder read
_MOST_HARD_LINKS = 1_000  # further names of files, each in an archive of its own
_PIECE = 1 << 20  # bytes that are read at once
_LINE = re.compile(
    rb"[-l]\S*\s+\d+\s+\S+\s+\S+\s+(?P<size>\d+)\s+"  # mode, links, owner, group, size
    rb"(?:(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?:\.\d+)? \+0000|\S+ +\S+(?: +\S+)??)"
    rb" (?P<folder>\.|" + re.escape(HOME_FOLDER.encode()) + rb")/"
)
_OTHER_TYPES = sum(1 << bit for bit in (31, 27, 26, 25, 24, 21, 19))  # folder, link, device, ... as Go writes a mode
_MISSING = 404  # HTTP
_ENTRY = re.compile(rb"\n(?=[-bcdlps][-rwxsStT]{9}[.+@]? +\d)")  # where a line of `ls -ln` begins


def read_container_files(
    api: docker.APIClient, container: str, request: WrittenRequest
) -> Iterator[WrittenFile | Unread]:
    """Yield what a job has written into its working folder, and what it wrote elsewhere and is wanted.

    Args:
        api: the engine. No other request may use it until the caller has taken the last file.
        container: the container; it has ended.
        request: what is wanted.

    Raises:
        NotThere: there is no such container.
        APIError: the engine refuses to read it.
    """
    reader = _ContainerReader(api, container, request)
    listed = reader.read_list()
    if listed is None:
        yield from reader.scan_working_folder()
        yield from reader.scan_home_folder()
    else:
        yield from reader.read_listed(listed)
    for pattern in request.elsewhere:
        yield from reader.read_elsewhere(pattern)
    if reader.is_cut:
        yield Unread(f"its folders have more than {format_bytes(MOST_READ)}")


@dataclass(frozen=True, slots=True)
class ContainerFiles:
    """Reads what ended jobs of one server wrote into their containers; an implementation of `WrittenReader`."""

    engine: Engine
    server: str  # id of the server

    def read_written(self, request: WrittenRequest) -> Iterator[WrittenFile | Unread]:
        with self.engine.stream() as api:
            yield from read_container_files(api, container_name(self.server, request.key), request)


class _ContainerReader:
    """Reads one container."""

    def __init__(self, api: docker.APIClient, container: str, request: WrittenRequest) -> None:
        self._api = api
        self._container = container
        self._request = request
        self._project: Mapping[str, ArchiveEntry] | None = None
        self._inspection: Mapping[str, Any] | None = None
        self._read = 0  # bytes of members of archives

    @property
    def is_cut(self) -> bool:
        """Whether the rest of an archive was not read, because there was too much."""
        return self._read > MOST_READ

    def read_list(self) -> WrittenList | None:
        """Return the listed files; None: there is no list.

        Raises:
            NotThere: there is no such container.
        """
        path = f"/{WORKING_FOLDER}/{LISTING}".encode()
        answer = self._api.head(self._url, params={"path": path}, timeout=self._api.timeout)
        if answer.status_code == _MISSING:
            return None
        raise_for_refusal(answer)
        status = decode_json_header(answer.headers["X-Docker-Container-Path-Stat"])
        size = int(status["size"])
        if int(status["mode"]) & _OTHER_TYPES or not len(LISTING_END) <= size <= _LONGEST_LIST:
            return None
        if size == len(LISTING_END):
            return WrittenList({}, {})
        for member, content in self._read_archive(path):
            if member.isreg():
                listed = b"".join(content)
                is_whole = listed.endswith(b"\n" + LISTING_END)
                return parse_list(listed.removesuffix(LISTING_END)) if is_whole else None
        return None

    def read_listed(self, listed: WrittenList) -> Iterator[WrittenFile | Unread]:
        """Yield the listed files, those without content first."""
        if len(listed.files) + len(listed.home_files) >= MOST_LISTED:
            yield Unread(f"it has written more than {MOST_LISTED:,} files")
        paths: set[str] = set()
        for path, file in listed.files.items():
            if is_cache(path) or self._is_unchanged(path, file):
                continue
            if self._request.wants(path):
                paths.add(path)
            elif file.size is not None:
                yield WrittenFile(path, file.size)
        yield from self._list_lost_in_home(listed)
        tops = sorted({path.split("/")[0] for path in paths})
        missed = {path: listed.files[path].size for path in paths if listed.files[path].size is not None}
        for top in tops if len(tops) <= _MOST_FETCHES else [""]:
            for fetched in self._fetch(top, paths):
                missed.pop(fetched.path, None)
                yield fetched
        for path, size in missed.items():  # removed since, or one of too many names of one file
            yield WrittenFile(path, size or 0)
            yield Unread(f"{show_name(path)} is not in the archives of the container")

    def _list_lost_in_home(self, listed: WrittenList) -> Iterator[WrittenFile]:
        for path, file in listed.home_files.items():
            if file.size is not None and self._is_lost_in_home(path):
                yield WrittenFile(path, file.size, is_in_home=True)

    def scan_working_folder(self) -> Iterator[WrittenFile | Unread]:
        """Yield the files that the job has written, by the archive of its whole working folder."""
        skipped = 0
        hard_links = list[str]()
        for member, content in self._read_archive(_locate("")):
            path = _name_member(member, "")
            if path is None or is_cache(path) or not self._is_new(path, member):
                skipped += member.size
            elif self._request.wants(path):
                yield from _show(path, member, content, hard_links)
                continue
            elif member.isreg():
                skipped += member.size
                yield WrittenFile(path, member.size, _read_mtime(member))
            if skipped > MOST_SCANNED:
                yield Unread("the working folder is too large to be read as a whole")
                return
        yield from self._read_hard_links(hard_links)

    def scan_home_folder(self) -> Iterator[WrittenFile | Unread]:
        """Yield the files that the job has written into its home folder, by the archive of that, without content."""
        skipped = 0
        for member, _ in self._read_archive(HOME_FOLDER.encode()):
            path = _name_member(member, "")
            skipped += member.size
            is_new = path is not None and member.isreg() and member.mtime >= self._find_creation()
            if path is not None and is_new and self._is_lost_in_home(path):
                yield WrittenFile(path, member.size, is_in_home=True)
            if skipped > MOST_SCANNED:
                yield Unread("the home folder is too large to be read as a whole")
                return

    def read_elsewhere(self, pattern: OutputPattern) -> Iterator[WrittenFile]:
        """Yield what the job has changed of the files that a pattern of another place means."""
        base = self._find_home().rstrip("/") if pattern.place is PatternPlace.HOME else ""
        above, mark, _ = encode_name(pattern.first.encode()).rpartition("/")
        hard_links = list[str]()
        for member, content in self._read_archive(f"{base}/{pattern.first}".encode()):
            path = _name_member(member, f"{above}{mark}", drops_first=False)
            if path is not None and pattern.matches(read_path(path)) and member.mtime >= self._find_creation():
                yield from _show(path, member, content, hard_links)

    def _fetch(self, top: str, paths: set[str]) -> Iterator[WrittenFile]:
        """Yield the wanted files and links of one entry of the working folder; empty: of the whole folder."""
        hard_links = list[str]()
        for member, content in self._read_archive(_locate(top)):
            name = _name_member(member, "", drops_first=not top)
            if name in paths:
                yield from _show(name, member, content, hard_links)
        yield from self._read_hard_links(hard_links)

    def _read_hard_links(self, paths: list[str]) -> Iterator[WrittenFile]:
        """Yield files that have several names: an archive has the content of the first name alone."""
        for path in paths[:_MOST_HARD_LINKS]:
            for member, content in self._read_archive(_locate(path)):
                yield from _show(path, member, content, [])

    def _read_archive(self, path: bytes) -> Iterator[tuple[tarfile.TarInfo, Iterator[bytes]]]:
        """Yield the members of the archive of a path, with their contents; nothing when nothing is there."""
        try:
            stream, _ = self._api.get_archive(self._container, path, chunk_size=_PIECE)
        except NotFound as error:
            if "No such container" in str(error.explanation):
                raise NotThere(str(error.explanation)) from error
            return
        with closing(stream), tarfile.open(fileobj=cast(IO[bytes], _PieceFile(stream)), mode="r|") as tar:
            for member in tar:
                yield member, _read_member(tar, member)
                self._read += member.size
                if self.is_cut:
                    return

    def _is_new(self, path: str, member: tarfile.TarInfo) -> bool:
        """Return True for a file that came after the start of the job. An archive has no other time of a file."""
        entry = self._list_project().get(path)
        if entry is None:
            return member.mtime >= self._find_creation()
        if entry.kind is EntryKind.LINK:
            return not member.issym()
        return (entry.size, entry.mtime) != (member.size, int(member.mtime))

    def _is_unchanged(self, path: str, file: ListedFile) -> bool:
        """Return True for a file of the project that is as it was: most likely only its mode changed."""
        entry = self._list_project().get(path)
        if entry is None:
            return False
        if file.size is None or entry.kind is EntryKind.LINK:
            return file.size is None
        return entry.size == file.size and file.mtime in (entry.mtime, None)

    def _is_lost_in_home(self, path: str) -> bool:
        patterns = (pattern for pattern in self._request.elsewhere if pattern.place is PatternPlace.HOME)
        return not is_home_cache(path) and not any(pattern.matches(read_path(path)) for pattern in patterns)

    def _list_project(self) -> Mapping[str, ArchiveEntry]:
        if self._project is None:
            self._project = self._request.list_project()
        return self._project

    def _find_creation(self) -> int:
        """Return when the engine made the container, in whole seconds since 1970, as the times in its archives.

        What comes with the container has its own times, and the project is compared file by file. The start would not
        do: an engine with much to do notes it seconds after the first process ran.
        """
        return to_nanoseconds(self._inspect()["Created"]) // 10**9

    def _find_home(self) -> str:
        """Return the home folder of the job: its riseml.yml, or an older server, may have chosen another one."""
        homes = [text.partition("=")[2] for text in self._inspect()["Config"]["Env"] or () if text.startswith("HOME=")]
        return homes[-1] if homes else self._request.home

    def _inspect(self) -> Mapping[str, Any]:
        if self._inspection is None:
            self._inspection = self._api.inspect_container(self._container)
        return self._inspection

    @property
    def _url(self) -> str:
        return f"{self._api.base_url}/v{self._api.api_version}/containers/{self._container}/archive"


@dataclass(frozen=True, slots=True)
class ListedFile:
    """One file or link of the list."""

    size: int | None  # bytes; None: it is a link
    mtime: int | None = None  # seconds since 1970; None: the list does not say, or it is a link


@dataclass(frozen=True, slots=True)
class WrittenList:
    """What the shell around a job lists, by path."""

    files: Mapping[str, ListedFile]  # below the working folder
    home_files: Mapping[str, ListedFile]  # below HOME_FOLDER


def parse_list(text: bytes) -> WrittenList:
    """Return the files and links of lines of `ls -ln`; other entries are left out.

    A line that does not begin an entry goes on with the name in the line before.
    """
    files: dict[str, ListedFile] = {}
    home_files: dict[str, ListedFile] = {}
    for line in _ENTRY.split(text.removesuffix(b"\n")):
        match = _LINE.match(line)
        if match is None:
            continue
        is_link = line[:1] == b"l"
        name = line[match.end() :]
        path = encode_name(name.partition(b" -> ")[0] if is_link else name)
        try:
            split_path(path)
        except FilesError:
            continue
        if len(files) + len(home_files) >= MOST_LISTED:
            break
        target = home_files if match["folder"] == HOME_FOLDER.encode() else files
        target[path] = ListedFile(None) if is_link else ListedFile(int(match["size"]), _parse_time(match["time"]))
    return WrittenList(files, home_files)


def _parse_time(text: bytes | None) -> int | None:
    try:
        return None if text is None else calendar.timegm(time.strptime(text.decode(), "%Y-%m-%d %H:%M:%S"))
    except ValueError:
        return None


class _PieceFile(io.RawIOBase):
    """The pieces of a stream as a file that tarfile can read."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._remainder = b""

    def read(self, size: int = -1) -> bytes:
        while not self._remainder:
            piece = next(self._pieces, None)
            if piece is None:
                return b""
            self._remainder = piece
        data, self._remainder = self._remainder[:size], self._remainder[size:]
        return data


def _read_member(tar: tarfile.TarFile, member: tarfile.TarInfo) -> Iterator[bytes]:
    file = tar.extractfile(member) if member.isreg() else None
    if file is not None:
        while piece := file.read(_PIECE):
            yield piece


def _name_member(member: tarfile.TarInfo, above: str, *, drops_first: bool = True) -> str | None:
    """Return the path of a member; None for a folder, something special, and a name that could lead elsewhere.

    Args:
        member: a member of an archive.
        above: the path of the folder that the archive's first name is in, with its `/`.
        drops_first: whether that first name is the folder that paths begin in.
    """
    if not (member.isreg() or member.issym() or member.islnk()):
        return None
    name = encode_name(member.name.encode("utf-8", "surrogateescape"))
    if drops_first:
        name = name.partition("/")[2]
    try:
        split_path(f"{above}{name}")
    except FilesError:
        return None
    return f"{above}{name}" if name else None


def _show(path: str, member: tarfile.TarInfo, content: Iterator[bytes], hard_links: list[str]) -> Iterator[WrittenFile]:
    """Yield a member as a file; note the path of one whose content is under another name."""
    if member.islnk():
        hard_links.append(path)
    elif member.issym():
        target = encode_name(member.linkname.encode("utf-8", "surrogateescape"))
        yield WrittenFile(path, mtime=_read_mtime(member), target=target)
    else:
        executable = bool(member.mode & 0o100)
        yield WrittenFile(path, member.size, _read_mtime(member), executable, content=content)


def _read_mtime(member: tarfile.TarInfo) -> int:
    return int(member.mtime * 1e9)


def _locate(path: str) -> bytes:
    """Return a path of the working folder as a path of the container."""
    return b"/".join([b"", WORKING_FOLDER.encode(), *split_path(path)])
