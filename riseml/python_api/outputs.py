"""The output of an experiment, as a program reads it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from riseml.base.errors import NotFound, UsageError
from riseml.base.records import dataclass
from riseml.python_api.errors import add_hints
from riseml.python_api.program import Program

if TYPE_CHECKING:
    from riseml.client.file_client import FileClient
    from riseml.client.server_client import Client
    from riseml.job_programs.folder_listing import Page

_PAGE = 1000  # entries of one request


@dataclass(frozen=True, slots=True)
class OutputFile:
    """A file of an output."""

    path: str  # below OUTPUT_DIR: `model/weights.pt`
    size: int  # bytes
    modified: float  # seconds since 1970


@dataclass(frozen=True, slots=True)
class RunOutput:
    """What the jobs of an experiment have written to OUTPUT_DIR, wherever the server keeps it."""

    program: Program
    identity: str  # of the experiment

    def url(self, path: str = "") -> str:
        """Return the address of a part, for `inputs` of another run: `output://4/model`."""
        return f"output://{self.identity}/{path}" if path else f"output://{self.identity}"

    def files(self, folder: str = "") -> list[OutputFile]:
        """Return all files below a folder, in the order of their paths.

        Raises:
            NotFound: there is no such folder.
        """
        with self.program.connect() as client:
            storage = self._open(client)
            return [
                OutputFile(os.path.join(folder, entry.path), entry.size, entry.mtime / 1e9)
                for page in _list_pages(storage, folder)
                for entry in page.entries
                if entry.kind == "file"
            ]

    def read_bytes(self, path: str) -> bytes:
        """Return the content of a file.

        Raises:
            NotFound: there is no such file.
            Conflict: a job wrote to it meanwhile.
        """
        with self.program.connect() as client:
            pieces = self._open(client).read_file(path)
            size = int(next(pieces).decode().split()[0])
            content = b"".join(pieces)
        return content[:size]  # the proof of the content comes last

    def read_text(self, path: str) -> str:
        """Return the content of a file in UTF-8."""
        return self.read_bytes(path).decode()

    @add_hints()
    def download(self, path: str = "", target: str | Path = ".") -> Path:
        """Copy a file, or a folder with all below it, into a folder of this machine; return where it is.

        Files that are there already with the same size and time are not copied again. No file is ever incomplete.

        Args:
            path: below OUTPUT_DIR; empty: the whole output.
            target: a folder, which is made when it is absent.

        Raises:
            NotFound: there is nothing at `path`.
        """
        from riseml.client.copying.copies import CopyLocation, CopyWatch, copy_tree
        from riseml.client.copying.sides import LocalEndpoint

        folder = Path(target)
        if folder.exists() and not folder.is_dir():
            raise UsageError(f"{folder} is a file", "name a folder for the copy")
        folder.mkdir(parents=True, exist_ok=True)
        name = path.strip("/").rpartition("/")[2]
        watch = CopyWatch(lambda *_: None, lambda _: None, lambda _: None)
        with self.program.connect() as client, closing(LocalEndpoint(folder)) as local:
            storage = self._open(client)
            entry = storage.look_at(path)
            if entry is None:
                raise NotFound(f"the output of {self.identity} has no {path!r}", "`.output.files()` lists what it has")
            source = CopyLocation(storage, path, f"{storage.place}/")
            copy_tree(source, entry, CopyLocation(local, name, ""), watch)
        return folder / name

    def _open(self, client: Client) -> FileClient:
        from riseml.client.file_client import StoragePlace

        return client.open_files(StoragePlace("output", self.identity))


def _list_pages(storage: FileClient, folder: str) -> Iterator[Page]:
    from riseml.files.storage_files import ListRequest

    after: str | None = None
    while True:
        page = storage.list_files(ListRequest(folder, after, _PAGE, deep=True))
        yield page
        after = page.next
        if after is None:
            return
