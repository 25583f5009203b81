"""The files of a stored state: for the executors, and for planning, which reads few of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property

from riseml.base.errors import EngineError, NotFound
from riseml.files.archives.entries import ArchiveEntry, EntryKind
from riseml.files.archives.manifest import load_manifest, measure_manifest
from riseml.files.archives.project_files import StateChanges
from riseml.files.project.messages import format_path
from riseml.store.projects.contents import ContentStore, DamagedContent

LONGEST_TEXT = 64 * 1024
"""Bytes of a text file that planning reads."""


class StoredFiles:
    """The files of a project, as an executor gets them (see `KeptState`).

    Args:
        contents: has the contents.
        data: the manifest of the state.
        find_manifest: returns the manifest of another state by its digest; None: it is not there.
    """

    def __init__(
        self, contents: ContentStore, data: bytes, find_manifest: Callable[[str], bytes | None] = lambda _: None
    ) -> None:
        self._contents = contents
        self._find_manifest = find_manifest
        self._data = data
        self.identity = hashlib.sha256(data).hexdigest()
        self.count, self.size = measure_manifest(data)

    @cached_property
    def _entries(self) -> tuple[ArchiveEntry, ...]:
        """The entries, parsed at the first use: a host that has this state already needs none of them."""
        return load_manifest(self._data)

    def find_changes(self, digest: str, identity: str) -> StateChanges | None:
        """Return the changes from an earlier state to this one; None when writing over that state is not enough."""
        data = self._find_manifest(digest)
        if data is None or hashlib.sha256(data).hexdigest() != identity:
            return None
        return compare_states(load_manifest(data), self._entries)

    def read_files(self) -> Iterator[tuple[ArchiveEntry, Iterator[bytes]]]:
        """Yield each entry with its content, which is checked while it is read.

        Raises:
            EngineError: a content is damaged, or cannot be read at the moment (not permanent); while it is read.
        """
        files = (bytes.fromhex(entry.content) for entry in self._entries if entry.kind is EntryKind.FILE)
        contents = self._contents.read_contents(files)
        for entry in self._entries:
            yield entry, _name_damaged(entry, next(contents)) if entry.kind is EntryKind.FILE else iter(())


def compare_states(before: Iterable[ArchiveEntry], after: Iterable[ArchiveEntry]) -> StateChanges | None:
    """Return the files to write over a state to get another; None when an entry of it must be removed."""
    former_entries = {entry.path: entry for entry in before}
    changed: list[ArchiveEntry] = []
    for entry in after:
        former = former_entries.pop(entry.path, None)
        if former is not None and (former.kind is EntryKind.FOLDER) is not (entry.kind is EntryKind.FOLDER):
            return None
        if former != entry:
            changed.append(entry)
    if former_entries:
        return None
    return StateChanges(frozenset(entry.path for entry in changed), sum(entry.size for entry in changed))


def _name_damaged(entry: ArchiveEntry, pieces: Iterator[bytes]) -> Iterator[bytes]:
    try:
        yield from pieces
    except DamagedContent as error:
        raise EngineError(
            f"the server's copy of {format_path(entry.path)} is damaged", str(error.hint), permanent=True
        ) from error


class StateContents(Mapping[str, str]):
    """The content, executable bit or link target of each path, for comparing two states.

    Args:
        data: the manifest; it is read when something is asked for.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data

    @cached_property
    def _descriptions(self) -> dict[str, str]:
        entries = load_manifest(self._data)
        return {entry.path: _describe_entry(entry) for entry in entries if entry.kind is not EntryKind.FOLDER}

    def __getitem__(self, path: str) -> str:
        """Return what is at a path.

        Raises:
            KeyError: nothing is.
        """
        return self._descriptions[path]

    def __iter__(self) -> Iterator[str]:
        """Yield the paths."""
        return iter(self._descriptions)

    def __len__(self) -> int:
        """Return the number of files and links."""
        return len(self._descriptions)


def _describe_entry(entry: ArchiveEntry) -> str:
    if entry.kind is EntryKind.LINK:
        return f"link:{entry.target}"
    return f"{'x' if entry.executable else '-'}{entry.content}"


class StateTexts(Mapping[str, str]):
    """The small text files of a state. Each is read at every access, and not kept.

    Args:
        contents: has the contents; they may be removed later.
        data: the manifest; it is read when something is asked for.
    """

    def __init__(self, contents: ContentStore, data: bytes) -> None:
        self._contents = contents
        self._data = data

    @cached_property
    def _hashes(self) -> dict[str, bytes]:
        return {
            entry.path: bytes.fromhex(entry.content)
            for entry in load_manifest(self._data)
            if entry.kind is EntryKind.FILE and entry.size <= LONGEST_TEXT and entry.path.endswith(".txt")
        }

    def __getitem__(self, path: str) -> str:
        """Return a content.

        Raises:
            KeyError: there is no such text.
            NotFound: it was removed.
        """
        try:
            return self._contents.read_text(self._hashes[path])
        except DamagedContent as error:
            raise NotFound("the project's files are not on the server any more", "run `riseml train` again") from error

    def __iter__(self) -> Iterator[str]:
        """Yield the paths."""
        return iter(self._hashes)

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self._hashes)
