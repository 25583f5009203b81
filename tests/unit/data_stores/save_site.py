"""An output, a store in memory, and what a server knows of both."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from riseml.data_stores.restore_output import Restored, RestoreRequest, restore_output
from riseml.data_stores.save_manifest import MANIFEST, SaveManifest, read_manifest
from riseml.data_stores.save_output import KnownFiles, SavePlace, SaveResult, SaveTask, claim_place, save_output
from riseml.files.local_files import LocalFiles
from riseml.spec.scalars.globs import parse_glob
from tests.support.memory_target import MemoryTarget

PLACE = "s3://runs/paul/toaster/4"


def is_of_jobs(path: str) -> bool:
    return path != "config"


@dataclass
class Site:
    """An output, a store, and what a server knows of both."""

    folder: Path
    target: MemoryTarget = field(default_factory=MemoryTarget)
    known: KnownFiles = field(default_factory=KnownFiles)
    only: tuple[str, ...] = ()
    attempt: int = 1
    before_read: Callable[[str], None] = lambda _: None
    after_read: Callable[[str], None] = lambda _: None

    def put(self, path: str, content: str, changed: float = 1000.0) -> None:
        """Write a file of the output."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
        os.utime(file, (changed, changed))

    def files(self) -> LocalFiles:
        """Return the output as the server reads it."""

        def enter() -> int:
            return os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)

        return TouchedFiles(self, "output://4", enter, enter)

    def head(self, owner: str = "5e17 4") -> SaveManifest:
        return SaveManifest(owner, "paul.4", "2026-11-23T03:00:00+00:00", self.attempt, ())

    def save(self, owner: str = "5e17 4") -> SaveResult:
        """Copy; what is known stays known when it fails, as on the server's disk."""
        patterns = [parse_glob(text) for text in self.only]

        def note(known: KnownFiles) -> None:
            self.known = known

        def wants(path: str) -> bool:
            return not patterns or any(pattern.matches(path) for pattern in patterns)

        def open_place() -> SavePlace:
            return claim_place(self.target, PLACE, self.head(owner))

        order = SaveTask(self.files(), open_place, self.head(owner), wants, is_of_jobs, note, lambda *_: None)
        found = save_output(order, self.known)
        self.known = found.known_files
        return found

    def manifest(self) -> SaveManifest:
        return read_manifest(self.target.objects[MANIFEST], PLACE)

    def check(self) -> dict[str, str]:
        """Check that every file of the manifest is there and whole, and return their contents."""
        found = {}
        for file in self.manifest().files:
            data = self.target.objects[file.key]
            assert (len(data), sha256(data).hexdigest()) == (file.size, file.sha256)
            found[file.path] = data.decode()
        return found

    def restore(self, check: Callable[[], None] = lambda: None) -> Restored:
        place = claim_place(self.target, PLACE, self.head())
        order = RestoreRequest(self.files(), place, is_of_jobs, check, lambda *_: None)
        return restore_output(order)


class TouchedFiles(LocalFiles):
    """Files that something changes when they are read."""

    def __init__(self, site: Site, *rest: object) -> None:
        super().__init__(*rest)  # type: ignore[arg-type]  # whatever its parent takes
        self._site = site

    def read_file(self, path: str, start: int, etag: str | None) -> Iterator[bytes]:
        self._site.before_read(path)
        pieces = super().read_file(path, start, etag)
        yield next(pieces)
        yield next(pieces)
        self._site.after_read(path)
        yield from pieces


def writes(site: Site) -> list[str]:
    """Return what was written since the last call."""
    found = [key for method, key in site.target.calls if method == "write"]
    site.target.calls.clear()
    return found
