"""The files of a project's state. Executors read them, and put them where a job runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Protocol, runtime_checkable

from riseml.base.records import dataclass
from riseml.files.archives.entries import ArchiveEntry
from riseml.files.archives.reader import read_content, read_entries
from riseml.files.archives.writer import END, pad_content, write_header


class ProjectFiles(Protocol):
    """The files, links and empty folders of one state of a project."""

    def read_files(self) -> Iterator[tuple[ArchiveEntry, Iterator[bytes]]]:
        """Yield each entry with its content in pieces. Read the pieces before the next entry.

        Raises:
            RisemlError: a content cannot be read, or is damaged; also while it is read.
            OSError: as above.
        """


@dataclass(frozen=True, slots=True)
class StateChanges:
    """The files to write over one state of a project to get another state."""

    paths: frozenset[str]  # paths of the entries that are new or differ
    size: int  # bytes of their contents


@runtime_checkable
class KeptState(ProjectFiles, Protocol):
    """A state of a project whose files the server keeps, so that a host can keep them, too."""

    identity: str  # SHA-256 (hex) of every field of every entry, modification times included
    size: int  # bytes of its contents
    count: int  # files, links and empty folders

    def find_changes(self, digest: str, identity: str) -> StateChanges | None:
        """Return the changes from an earlier state to this one.

        Args:
            digest: of the earlier state.
            identity: of the earlier state.

        Returns:
            None: an entry was removed or was a folder, so that writing over the earlier state is not enough; or the
            server does not have that state any more.
        """


@dataclass(frozen=True, slots=True)
class OpenTar:
    """A project in an open tar."""

    file: BinaryIO

    def read_files(self) -> Iterator[tuple[ArchiveEntry, Iterator[bytes]]]:
        """Yield each entry with its content.

        Raises:
            UsageError: it is not a plain tar archive, or is cut off.
        """
        for entry, at in read_entries(self.file):
            yield entry, read_content(self.file, at, entry.size)


@dataclass(frozen=True, slots=True)
class TarFiles:
    """A project in a tar."""

    path: Path

    def read_files(self) -> Iterator[tuple[ArchiveEntry, Iterator[bytes]]]:
        """Yield each entry with its content.

        Raises:
            UsageError: it is not a plain tar archive, or is cut off.
            OSError: it cannot be read.
        """
        with self.path.open("rb") as file:
            yield from OpenTar(file).read_files()


def write_tar(project: ProjectFiles) -> Iterator[bytes]:
    """Yield a project as a tar, in pieces; one state always gives the same bytes.

    Raises:
        RisemlError: a content cannot be read, or is damaged.
        OSError: as above.
    """
    for entry, content in project.read_files():
        yield write_header(entry)
        yield from content
        yield pad_content(entry.size)
    yield END
