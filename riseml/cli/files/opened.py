"""Open the addresses that a user has typed: find the side of each, and resolve its patterns."""

from __future__ import annotations

import glob
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from riseml.base.errors import NotFound, RisemlError, UsageError
from riseml.base.records import dataclass
from riseml.cli.files.addresses import StorageAddress, check_project, parse_storage_address
from riseml.client.copying.copies import CopyLocation
from riseml.client.copying.sides import LocalEndpoint, split_local
from riseml.client.identities import find_identity
from riseml.files.path_names import join_paths, to_path
from riseml.files.storage_files import MOST_ENTRIES, ListRequest
from riseml.job_programs.folder_paths import FileInfo, show_name

if TYPE_CHECKING:
    from riseml.cli.context import CommandContext
    from riseml.client.file_client import FileClient, StoragePlace
    from riseml.client.server_client import Client

_HIDDEN = "."


@dataclass(frozen=True, slots=True)
class OpenedPath:
    """A path that exists."""

    end: CopyLocation
    entry: FileInfo
    name: str  # its last name, as typed; of a root, the ID of the experiment or `data`
    address: str = ""  # as typed, if that differs from the title and the path of `end`

    @property
    def shown(self) -> str:
        """The whole address for people."""
        return show_name(self.make_address())

    def make_address(self, inner: str = "") -> str:
        """Return the address of this path, or of one below it, as a path of `folder_paths`."""
        if self.address and not inner:
            return self.address
        return f"{self.end.title}{join_paths(self.end.path, inner)}"


class PathOpener:
    """Opens addresses, and closes everything at the end.

    Args:
        command: the surroundings.
        stack: closes what was opened.
    """

    def __init__(self, command: CommandContext, stack: ExitStack) -> None:
        self._command = command
        self._stack = stack
        self._client: Client | None = None
        # A shell may make thousands of paths from one pattern: sources in one folder or storage share its descriptor.
        self._folders: dict[Path, LocalEndpoint] = {}
        self._storages: dict[StoragePlace, FileClient] = {}

    def find_sources(self, text: str) -> list[OpenedPath]:
        """Return the paths that an address or a pattern names.

        Raises:
            NotFound: nothing.
        """
        address = self._read_address(text)
        opened = list(self._find_local(text) if address is None else self._find_stored(address))
        if not opened:
            raise NotFound(f"{text} names nothing", "`riseml ls` shows what is there")
        return opened

    def open_target(self, text: str) -> tuple[CopyLocation, FileInfo | None, bool]:
        """Return the target of a copy, the entry that exists there, and whether the target must be a folder."""
        address = self._read_address(text)
        if address is not None:
            if address.is_pattern:
                raise UsageError(f"{text} is a pattern", "name one target")
            end = self.open_stored(address)
            return end, end.side.look_at(address.path), address.wants_folder
        path = self._command.folder / text
        if path.is_dir():
            side = self._keep_open(LocalEndpoint(path))
            end = CopyLocation(side, "", to_path(f"{text.rstrip('/')}/") if text not in ("", ".") else "")
            return end, side.look_at(""), True
        folder, name = split_local(path)
        above = text.rstrip("/").rpartition("/")
        side = self._keep_open(LocalEndpoint(folder))
        end = CopyLocation(side, to_path(name), to_path("".join(above[:2])))
        return end, side.look_at(end.path), text.endswith("/")

    def open_stored(self, address: StorageAddress) -> CopyLocation:
        """Return a path of a storage, whether it exists or not, on its own connection: a copy reads and writes."""
        self._check_address(address)
        return CopyLocation(self._connect_storage(address.place), address.path, f"{address.place}/")

    def _read_address(self, text: str) -> StorageAddress | None:
        """Return a path of a storage with the ID of its experiment; None: the text is not such an address."""
        address = parse_storage_address(text)
        if address is None or not address.has_word:
            return address if address is None or not address.user else self._name_owner(address)
        identity = find_identity(self._connect(), address.place.of)
        return replace(address, place=replace(address.place, of=identity))

    def _name_owner(self, address: StorageAddress) -> StorageAddress:
        """Return an address with a user and a project; its ID names the user where somebody else asks."""
        with suppress(RisemlError):  # a server of an earlier version does not say who calls
            caller = self._connect().open_accounts().get_caller()
            if caller["team"] and caller["user"] != address.user:
                return replace(address, place=replace(address.place, of=f"{address.user}.{address.place.of}"))
        return address

    def _check_address(self, address: StorageAddress) -> None:
        if address.user:
            view = self._connect().get_experiment(address.place.of)
            check_project(address, view["user"], view["project"])

    def _connect_storage(self, place: StoragePlace) -> FileClient:
        return self._connect().open_files(place)

    def _connect(self) -> Client:
        if self._client is None:
            self._client = self._stack.enter_context(self._command.connect())
        return self._client

    def _keep_open(self, side: LocalEndpoint) -> LocalEndpoint:
        self._stack.callback(side.close)
        return side

    def _find_stored(self, address: StorageAddress) -> Iterator[OpenedPath]:
        self._check_address(address)
        place = address.place
        side = self._storages.get(place) or self._storages.setdefault(place, self._connect_storage(place))
        end = CopyLocation(side, address.path, f"{place}/")
        entry = end.side.look_at(end.path) if address.path or not address.is_pattern else None
        if entry is not None:
            root = address.place.of or "data"
            yield OpenedPath(end, entry, end.path.rpartition("/")[2] or root)
        elif address.is_pattern:
            for path, entry in _match_names(end, "", address.path.split("/")):
                yield OpenedPath(CopyLocation(end.side, path, end.title), entry, path.rpartition("/")[2])

    def _find_local(self, text: str) -> Iterator[OpenedPath]:
        if not text:
            raise UsageError("a path is empty", "name a file or a folder")
        path = self._command.folder / text
        names = [text] if path.exists() or path.is_symlink() else []
        names = names or sorted(glob.glob(text, root_dir=self._command.folder))
        for name in names:
            opened = self._open_local(name)
            if opened is not None:
                yield opened

    def _open_local(self, text: str) -> OpenedPath | None:
        """Return a path of this machine; what a link leads to is opened, under the name of the link."""
        real = (self._command.folder / text).resolve()
        above, last = split_local(real)
        typed = text.rstrip("/")
        name = typed.rpartition("/")[2]
        if name == last:
            title = typed[: -len(last)]
        elif real.is_dir():  # `.`, `..`, or a link to a folder
            above = real
            last = ""
            title = f"{typed}/"
        else:
            title = f"{above}/"
        side = self._folders.get(above) or self._folders.setdefault(above, self._keep_open(LocalEndpoint(above)))
        end = CopyLocation(side, to_path(last), to_path(title))
        entry = side.look_at(end.path)
        if entry is None:
            return None
        return OpenedPath(end, entry, to_path(real.name if name in ("", ".", "..") else name), to_path(typed))


def _match_names(end: CopyLocation, above: str, patterns: list[str]) -> Iterator[tuple[str, FileInfo]]:
    """Yield the paths that match a pattern, name by name; a name with a leading dot needs one in the pattern."""
    pattern = patterns[0]
    below = patterns[1:]
    after: str | None = None
    while True:
        page = end.side.list_files(ListRequest(above, after, MOST_ENTRIES))
        for entry in page.entries:
            if entry.path.startswith(_HIDDEN) and not pattern.startswith(_HIDDEN):
                continue
            if not fnmatchcase(entry.path, pattern):
                continue
            path = join_paths(above, entry.path)
            if not below:
                yield path, entry
            elif entry.kind == "folder":
                yield from _match_names(end, path, below)
        after = page.next
        if after is None:
            return
