"""The client of the routes of files: lists, and contents whose transfer continues after a break where it stopped.

A server may send anything: a caller that writes what comes from here splits every path with `folder_paths.split_path`.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from riseml.base.errors import NotFound, Refused, RisemlError, Unreachable
from riseml.base.records import dataclass
from riseml.client.answer_check import Answer
from riseml.client.exchange import AnswerLost, Exchange, RetryPolicy, RetryTimer, ServerAbsent
from riseml.files.storage_files import ListRequest
from riseml.job_programs.folder_contents import PART, FileUpload
from riseml.job_programs.folder_listing import Page
from riseml.job_programs.folder_paths import FileInfo, FilesError, split_path

if TYPE_CHECKING:
    from riseml import wire
else:
    from riseml.client.answer_check import WIRE_NAMES as wire

_PATIENCE = 120.0  # seconds; a server measures large folders, and a host starts a helper
_PROOF = 33  # bytes after a content: its proof
_KINDS = ("file", "folder", "link", "other")

Content = Callable[[int], Iterator[bytes]]
"""Returns a content from an offset on, and then its SHA-256 in one piece. It is called again after a break."""


@dataclass(frozen=True, slots=True)
class StoragePlace:
    """A storage of the server, and its name for people."""

    root: str  # `data` or `output`
    of: str = ""  # ID of the experiment, for `output`

    def __str__(self) -> str:
        return f"output://{self.of}" if self.root == "output" else "data:/"


class FileClient:
    """Lists, reads and writes the files of one storage.

    Args:
        exchange: the connections to the server, which the caller closes.
        place: the storage.
        retry: how long the client tries to reach a lost server.
    """

    def __init__(self, exchange: Exchange, place: StoragePlace, retry: RetryPolicy) -> None:
        self.place = place
        self._exchange = exchange
        self._retry = retry

    def list_files(self, request: ListRequest) -> Page:
        """Return a part of a listing."""
        query = {"after": request.after or "", "limit": str(request.limit), "deep": str(request.deep).lower()}
        listing = self._repeat(
            lambda: self._request("GET", "/files", {"path": request.path, **query}, wire.FileListing)
        )
        try:
            entries = [_read_view(view) for view in listing["entries"]]
            return Page(_read_view(listing["at"]), entries, listing["next"])
        except (ValueError, FilesError):
            raise self._make_strange_error() from None

    def look_at(self, path: str) -> FileInfo | None:
        """Return the file, folder or link at a path; None when nothing is there."""
        try:
            return self.list_files(ListRequest(path, limit=0)).at
        except NotFound:
            return None

    def make_folder(self, path: str) -> None:
        """Make a folder with those above it."""
        self._repeat(lambda: self._request("POST", "/files/folder", {"path": path}, wire.FileView))

    def make_link(self, path: str, target: str) -> None:
        """Make a link with the folders above it; a file or a link that is there is replaced."""
        self._repeat(lambda: self._request("POST", "/files/link", {"path": path, "target": target}, wire.FileView))

    def remove_files(self, path: str) -> wire.RemovalView:
        """Remove a path with all below it, or a part of it."""
        return self._request("POST", "/files/remove", {"path": path}, wire.RemovalView)

    def read_file(self, path: str, start: int = 0, etag: str = "") -> Iterator[bytes]:
        """Yield a header, a content and its proof, as `folder_contents.read_pieces` does.

        Raises:
            Conflict: the file changed after it was begun.
        """
        timer = RetryTimer(self._retry)
        position = start
        size = -1
        while True:
            query = {"path": path, "start": str(position), "etag": etag}
            try:
                with self._open_response("GET", "/files/content", query) as response:
                    self._exchange.raise_refusal(response)
                    length, etag = self._read_head(response)
                    if size < 0:
                        size = length
                        yield f"{size} {etag}".encode()
                    proof = b""
                    for piece in response.iter_raw():
                        content = piece[: size - position]
                        excess = piece[size - position :]
                        if content:
                            position += len(content)
                            timer.reset()
                            yield content
                        proof = self._add_proof(proof, excess)
                if position == size and len(proof) == _PROOF:
                    yield proof
                    return
                cut: Unreachable = AnswerLost("the server broke off in the middle of a file")
            except (AnswerLost, ServerAbsent) as error:
                cut = error
            self._exchange.close()
            timer.wait(cut, None)

    def write_file(self, upload: FileUpload, content: Content) -> None:
        """Send a file. The file has its name when this returns; a file that was there is replaced in one step.

        Args:
            upload: the file; it gets an upload of its own.
            content: called again after a break.
        """
        upload = upload._replace(upload=secrets.token_hex(8))
        timer = RetryTimer(self._retry)
        try:
            while True:
                try:
                    return self._put_content(upload, content(upload.offset))
                except (AnswerLost, ServerAbsent) as error:
                    self._exchange.close()
                    timer.wait(error, None)
                    if self._is_written(upload):
                        return None
                    upload = upload._replace(offset=self._find_offset(upload))
        except BaseException:
            with suppress(RisemlError):
                self.remove_files(_part_path(upload))
            raise

    def _put_content(self, upload: FileUpload, pieces: Iterator[bytes]) -> None:
        query = {name: str(value) for name, value in upload._asdict().items()}
        query["executable"] = query["executable"].lower()
        failure: list[BaseException] = []

        def guard() -> Iterator[bytes]:
            """End the body early when its source fails, so that the server discards it."""
            try:
                yield from pieces
            except GeneratorExit:
                raise
            except BaseException as error:  # noqa: BLE001  # raised below; Ctrl-C, too
                failure.append(error)

        try:
            with self._open_response("PUT", "/files/content", query, content=guard()) as response:
                self._exchange.raise_refusal(response)
        except RisemlError:
            if failure:
                raise failure[0] from None
            raise

    def _is_written(self, upload: FileUpload) -> bool:
        info = self.look_at(upload.path)
        return info is not None and (info.kind, info.size, info.mtime) == ("file", upload.size, upload.mtime)

    def _find_offset(self, upload: FileUpload) -> int:
        part = self.look_at(_part_path(upload))
        return 0 if part is None or part.kind != "file" else min(part.size, upload.size)

    def _read_head(self, response: Any) -> tuple[int, str]:
        try:
            size = int(response.headers["x-riseml-size"])
            etag = str(response.headers["etag"]).strip('"')
        except (KeyError, ValueError):
            raise self._make_strange_error() from None
        if size < 0:
            raise self._make_strange_error()
        return size, etag

    def _add_proof(self, proof: bytes, more: bytes) -> bytes:
        if len(proof) + len(more) > _PROOF:
            raise Refused(f"the riseml server at {self._exchange.address} sent more than the file has", "is it one?")
        return proof + more

    def _open_response(self, method: str, path: str, query: Mapping[str, str], **request: Any) -> Any:
        params = {"root": self.place.root, "of": self.place.of, **query}
        return self._exchange.open_response(method, path, timeout=_PATIENCE, params=params, **request)

    def _request(self, method: str, path: str, query: Mapping[str, str], shape: type[Answer]) -> Answer:
        params = {"root": self.place.root, "of": self.place.of, **query}
        return self._exchange.request_answer(method, path, shape, timeout=_PATIENCE, params=params)

    def _repeat(self, ask: Callable[[], Answer]) -> Answer:
        """Return an answer. Send the request again while no server answers: a second time it changes nothing."""
        timer = RetryTimer(self._retry)
        while True:
            try:
                return ask()
            except (AnswerLost, ServerAbsent) as error:
                self._exchange.close()
                timer.wait(error, None)

    def _make_strange_error(self) -> RisemlError:
        return Unreachable(f"{self._exchange.address} answered, but not as a riseml server does", "is it one?")


def _part_path(upload: FileUpload) -> str:
    above, slash, _ = upload.path.rpartition("/")
    return f"{above}{slash}{PART}{upload.upload}"


def _read_view(view: wire.FileView) -> FileInfo:
    """Return a file as the server describes it.

    Raises:
        FilesError: its path leads elsewhere.
        ValueError: its kind or its size is not that of a file.
    """
    split_path(view["path"])
    info = FileInfo(**{name: view[name] for name in FileInfo._fields})  # type: ignore[literal-required]  # the same names
    if info.kind not in _KINDS or info.size < 0:
        raise ValueError(info)
    return info
