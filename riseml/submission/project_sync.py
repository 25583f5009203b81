"""Send a project's files to the server: only the contents that it lacks. An interrupted sync continues where it
stopped."""

from __future__ import annotations

import hashlib
import os
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from riseml.base.amounts import count_noun
from riseml.base.errors import RisemlError, Unreachable

if TYPE_CHECKING:
    from riseml.client.server_client import Client
    from riseml.files.project.archive import Snapshot
    from riseml.files.project.file_index import FileIndex
    from riseml.files.project.listing import Listing, Surroundings
    from riseml.submission.submitter import Submitter

_MOST_SYNCS = 3  # tries with a project that changes while this command reads it
_MOST_BREAKS = 5  # tries in a row in which no content arrives
_MOST_WAITS = 3  # to find a server that was lost while this command read the files
_PAUSE = 0.5  # seconds before the first new try; each later one is twice as long


def find_surroundings(submitter: Submitter) -> Surroundings:
    """Return what is around a project, for its user: riseml's own folders do not belong to it."""
    from riseml.files.project.listing import Surroundings

    settings = submitter.settings()
    folders = ("RISEML_HOME", settings.home), ("RISEML_OUTPUT", settings.output)
    return Surroundings(submitter.environ, folders, submitter.messages.find_files())


class ProjectSync:
    """The sync of one project folder, with the index of this user.

    Args:
        submitter: the user.
        folder: of the project.
    """

    def __init__(self, submitter: Submitter, folder: Path) -> None:
        self._submitter = submitter
        self._folder = folder
        self._index: FileIndex | None = None

    def list_files(self) -> Listing:
        """List the project's files; those that the index knows have their content already.

        Raises:
            UsageError: an entry cannot be sent, or the files are too large.
        """
        from riseml.base.settings import read_size
        from riseml.files.project.listing import DEFAULT_LIMIT, LIMIT_VARIABLE, list_project_files

        limit = read_size(self._submitter.environ, LIMIT_VARIABLE, DEFAULT_LIMIT)
        return list_project_files(self._folder, limit, self._open_index(), find_surroundings(self._submitter))

    def name_files(self, listing: Listing) -> Snapshot:
        """Return the state of the project with these files, and send nothing.

        Raises:
            UsageError: a file cannot be read, or changes too fast.
        """
        return self._read_files(listing)

    def send_files(self, client: Client, listing: Listing, *, quiet: bool) -> str:
        """Send the contents of a consistent state of the project that the server lacks; return the digest of the state.

        Raises:
            ProjectChanged: a program writes to the project so often that no consistent state could be read.
        """
        from riseml.files.project.archive import ProjectChanged

        for _ in range(_MOST_SYNCS - 1):
            try:
                return self._send_once(client, listing, quiet=quiet)
            except ProjectChanged as error:
                self._submitter.messages.print_notes([f"{error.message}: it is sent again as it is now"])
                listing = self.list_files()
        return self._send_once(client, listing, quiet=quiet)

    def _send_once(self, client: Client, listing: Listing, *, quiet: bool) -> str:
        from riseml.files.project.messages import format_size

        messages = self._submitter.messages
        if not quiet:
            messages.begin_line(
                f"Syncing project ({format_size(listing.size)}, {count_noun(listing.count, 'file')})..."
            )
        try:
            snapshot = self._read_files(self._send_early(client, listing))
            stored = self._find_snapshot(client, snapshot.digest)
            if not stored:
                self._send_missing(client, snapshot)
        except BaseException:
            if not quiet:
                messages.print_lines([""])  # ends the line
            raise
        if not quiet:
            messages.print_lines(["done (no changes)" if stored else "done"])
        return snapshot.digest

    def _read_files(self, listing: Listing) -> Snapshot:
        from riseml.files.project.archive import take_snapshot

        index = self._open_index()
        try:
            return take_snapshot(listing, index)
        finally:
            index.save()

    def _send_early(self, client: Client, listing: Listing) -> Listing:
        """Give many unread files to a server on this machine while they are read; return the listing with their hashes.

        What the server does not take is sent later, as to any other server; a problem that lasts is an error then.
        """
        from riseml.files.archives.pieces import INCOMING
        from riseml.files.project.early_contents import EarlyContents

        early = EarlyContents(listing, self._open_index())
        if client.address.socket is None or not early.are_worth_it():
            return listing
        from riseml.files.project.handed_packs import hand_over_packs

        records = self._submitter.messages.show_sync(early.pack(), early.size)
        with closing(records), suppress(RisemlError, OSError):
            hand_over_packs(records, self._submitter.settings().snapshots / INCOMING, client)
        return early.name_entries()

    def _find_snapshot(self, client: Client, digest: str) -> bool:
        """Return True when the server has this state; a server that was lost gets some seconds to start again."""
        for breaks in range(_MOST_WAITS):
            with suppress(Unreachable):
                return client.has_snapshot(digest)
            self._submitter.wait(_PAUSE * 2**breaks)
            client.close()
        return client.has_snapshot(digest)

    def _send_missing(self, client: Client, snapshot: Snapshot) -> None:
        """Send the list of the files, then the contents that the server lacks; continue after broken connections."""
        from riseml.files.archives.manifest import write_manifest

        manifest = write_manifest(snapshot.entries)
        missing = client.put_manifest(snapshot.digest, manifest)
        breaks = 0
        while missing:
            try:
                changed = self._send_contents(client, snapshot, missing)
            except Unreachable:
                if breaks == _MOST_BREAKS:
                    raise
                self._submitter.wait(_PAUSE * 2**breaks)
                client.close()
                left = client.put_manifest(snapshot.digest, manifest)
                breaks = 0 if len(left) < len(missing) else breaks + 1
                missing = left
                continue
            if changed:
                self._report_changed(snapshot, changed)
            return

    def _send_contents(self, client: Client, snapshot: Snapshot, missing: list[str]) -> list[str]:
        from riseml.files.project.archive import pack_contents

        digests = frozenset(missing)
        sizes = {entry.content: entry.size for entry in snapshot.entries if entry.content in digests}
        records = self._submitter.messages.show_sync(pack_contents(snapshot, digests), sum(sizes.values()))
        return client.send_contents(snapshot.digest, records)

    def _report_changed(self, snapshot: Snapshot, changed: list[str]) -> None:
        """Remove wrong entries from the index.

        Raises:
            ProjectChanged: always.
        """
        from riseml.files.project.archive import make_changed_error

        digests = frozenset(changed)
        entries = [entry for entry in snapshot.entries if entry.content in digests]
        index = self._open_index()
        index.forget_contents([entry.path for entry in entries])
        index.save()
        raise make_changed_error(entries[0] if entries else snapshot.entries[0])

    def _open_index(self) -> FileIndex:
        """Return the index as it was last saved."""
        from riseml.files.project.file_index import FileIndex

        if self._index is None:
            name = hashlib.sha256(os.fsencode(os.path.realpath(self._folder))).hexdigest()
            self._index = FileIndex(self._folder, self._submitter.settings().home / "cache" / "projects" / name)
        return self._index
