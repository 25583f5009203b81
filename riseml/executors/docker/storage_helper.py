"""Files on a host that the server does not see, through a helper container that mounts them.

The helper runs `job_programs.file_service` with the Python of an image that the host has: without a network, without
capabilities, with a read-only file system, as the user who owns the files. It mounts only the requested folder. Its
standard input is its connection to the server: when that ends, the container ends, and the engine removes it.
"""

from __future__ import annotations

import json
import logging
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import field
from typing import Any

import docker
from docker.errors import ImageNotFound

from riseml.base.errors import EngineError, NotFound, RisemlError, Unreachable
from riseml.base.records import dataclass
from riseml.base.stream_messages import Channel, ChannelData
from riseml.executors.capabilities import StorageRequest
from riseml.executors.docker.containers import describe_binds, describe_mounts
from riseml.executors.docker.exec_codecs import FramedCodec
from riseml.executors.docker.helpers import Helpers
from riseml.executors.docker.image_names import WITHOUT_PROGRAMS
from riseml.files.storage_files import FileWriter, ListRequest, describe_trouble
from riseml.job_programs import read_file_service
from riseml.job_programs.folder_contents import FileUpload
from riseml.job_programs.folder_listing import Page, Removed
from riseml.job_programs.folder_paths import FileErrorKind, FileInfo, FilesError

_HEADER = struct.Struct(">cI")
_IDLE = 20.0  # seconds that a helper waits for the next request; it ends by itself after 60
_START = 30.0  # seconds that a helper may take to begin
_SILENCE = 300.0  # seconds without an answer
_SEARCH = 30.0  # seconds in which images are tried
_MOST_MESSAGE = 1 << 26  # bytes
_MOST_HELD = 4  # idle helpers of one host

log = logging.getLogger(__name__)


class HelperSession:
    """One helper container, and the connection to it. One thread at a time uses it."""

    def __init__(self, stream: socket.socket, received: bytes, note_end: Callable[[], None]) -> None:
        self._stream = stream
        self._note_end = note_end
        self._codec = FramedCodec()
        self._buffer = bytearray()
        self._error_output = b""  # the last bytes that Python wrote to its standard error
        self.used = time.monotonic()
        self._buffer_bytes(received)

    def close(self) -> None:
        """End the helper."""
        with suppress(OSError):
            self._stream.shutdown(socket.SHUT_RDWR)
        self._stream.close()
        self._note_end()

    def begin(self) -> None:
        """Tell the helper where the engine's own bytes of the request end, and its messages begin."""
        self._send_bytes(b"\n")

    def send(self, kind: bytes, message: bytes) -> None:
        """Send one message."""
        self._send_bytes(_HEADER.pack(kind, len(message)) + message)

    def _send_bytes(self, data: bytes) -> None:
        self._stream.settimeout(_SILENCE)
        try:
            self._stream.sendall(data)
        except OSError as error:
            raise Unreachable(f"the helper container broke off: {error}") from error

    def ask(self, **order: object) -> dict[str, Any]:
        """Send a question and return its answer."""
        self.send(b"J", json.dumps(order).encode())
        return self.receive_answer(_SILENCE)

    def receive_answer(self, seconds: float) -> dict[str, Any]:
        """Return the next answer.

        Raises:
            FilesError: the helper refused.
        """
        kind, message = self.receive(seconds)
        if kind != b"J":
            raise EngineError("the helper container answered something else")
        answer: dict[str, Any] = json.loads(message)
        if "trouble" in answer:
            raise FilesError(FileErrorKind[answer["trouble"]], str(answer["path"]), str(answer["detail"]))
        return answer

    def receive(self, seconds: float = _SILENCE) -> tuple[bytes, bytes]:
        """Return the next message."""
        header = self._read_bytes(_HEADER.size, seconds)
        kind, size = _HEADER.unpack(header)
        if size > _MOST_MESSAGE:
            raise EngineError("the helper container sent too much at once")
        return kind, self._read_bytes(size, seconds)

    def _read_bytes(self, size: int, seconds: float) -> bytes:
        self._stream.settimeout(seconds)
        while len(self._buffer) < size:
            try:
                data = self._stream.recv(1 << 18)
            except OSError as error:
                raise Unreachable(f"the helper container does not answer: {error}") from error
            if not data:
                words = self._error_output.decode("utf-8", "replace").strip().splitlines()
                raise EngineError(f"the helper container ended: {words[-1] if words else 'it said nothing'}")
            self._buffer_bytes(data)
        content = bytes(self._buffer[:size])
        del self._buffer[:size]
        return content

    def _buffer_bytes(self, data: bytes) -> None:
        for message in self._codec.decode(data):
            if isinstance(message, ChannelData) and message.channel is Channel.OUTPUT:
                self._buffer += message.content
            elif isinstance(message, ChannelData):
                self._error_output = (self._error_output + message.content)[-2000:]


@dataclass(slots=True)
class StorageHelpers:
    """The helpers of one host; an implementation of `StorageAccess`. An idle helper waits for requests."""

    helpers: Helpers  # helpers of the host
    _idle: list[tuple[StorageRequest, HelperSession]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def open_storage(self, request: StorageRequest) -> HelperFiles:
        return HelperFiles(self, request)

    def take(self, request: StorageRequest) -> HelperSession:
        """Return a helper for one order alone."""
        now = time.monotonic()
        stale = []
        chosen = None
        with self._lock:
            for entry in list(self._idle):
                idle_order, session = entry
                if now - session.used > _IDLE:
                    stale.append(session)
                elif chosen is None and idle_order == request:
                    chosen = session
                else:
                    continue
                self._idle.remove(entry)
        for session in stale:
            session.close()
        return chosen or _start_helper(self.helpers, request)

    def give_back(self, request: StorageRequest, session: HelperSession) -> None:
        """Keep a helper for the next request."""
        session.used = time.monotonic()
        with self._lock:
            self._idle.append((request, session))
            oldest = self._idle.pop(0)[1] if len(self._idle) > _MOST_HELD else None
        if oldest is not None:
            oldest.close()

    @contextmanager
    def guard(self, request: StorageRequest, session: HelperSession) -> Iterator[None]:
        """Keep the helper when it refuses a request; end it after any other error in the block.

        Raises:
            RisemlError: the helper refused; the message is for users.
        """
        try:
            yield
        except FilesError as error:
            self.give_back(request, session)
            raise describe_trouble(error, request.title) from None
        except BaseException:
            session.close()
            raise

    def close(self) -> None:
        """End all helpers."""
        with self._lock:
            idle, self._idle = self._idle, []
        for _, session in idle:
            session.close()


class HelperFiles:
    """The files that helpers serve; an implementation of `StorageFiles`."""

    def __init__(self, helpers: StorageHelpers, request: StorageRequest) -> None:
        self._helpers = helpers
        self._request = request

    def list_files(self, request: ListRequest) -> Page:
        with self._session() as session:
            answer = session.ask(
                do="list", path=request.path, after=request.after, limit=request.limit, deep=request.deep
            )
            return Page(FileInfo(*answer["at"]), [FileInfo(*entry) for entry in answer["entries"]], answer["next"])

    def read_file(self, path: str, start: int, etag: str | None) -> Iterator[bytes]:
        with self._session() as session:
            session.send(b"J", json.dumps({"do": "read", "path": path, "start": start, "etag": etag}).encode())
            while True:
                kind, message = session.receive()
                if kind == b"E":
                    return
                if kind != b"D":
                    answer = json.loads(message)
                    raise FilesError(FileErrorKind[answer["trouble"]], str(answer["path"]), str(answer["detail"]))
                yield message

    def write_file(self, upload: FileUpload) -> FileWriter:
        session = self._helpers.take(self._request)
        with self._helpers.guard(self._request, session):
            session.ask(do="write", **upload._asdict())
        return _HelperWriter(self._helpers, self._request, session)

    def make_folder(self, path: str) -> None:
        with self._session() as session:
            session.ask(do="folder", path=path)

    def make_link(self, path: str, target: str) -> FileInfo:
        with self._session() as session:
            return FileInfo(*session.ask(do="link", path=path, target=target)["seen"])

    def remove_files(self, path: str, limit: int) -> Removed:
        with self._session() as session:
            return Removed(*session.ask(do="remove", path=path, limit=limit)["removed"])

    def count_free(self) -> int:
        with self._session() as session:
            return int(session.ask(do="free")["free"])

    def count_used(self) -> int:
        with self._session() as session:
            return int(session.ask(do="used")["used"])

    @contextmanager
    def _session(self) -> Iterator[HelperSession]:
        """Give a helper, and take it back afterwards."""
        session = self._helpers.take(self._request)
        with self._helpers.guard(self._request, session):
            yield session
        self._helpers.give_back(self._request, session)


class _HelperWriter:
    """Writes one file through a helper."""

    def __init__(self, helpers: StorageHelpers, request: StorageRequest, session: HelperSession) -> None:
        self._helpers = helpers
        self._request = request
        self._session = session
        self._is_open = True

    def write(self, piece: bytes) -> None:
        self._session.send(b"D", piece)

    def finish(self) -> FileInfo:
        return FileInfo(*self._end_write("finish")["seen"])

    def discard(self) -> None:
        self._try_end("discard")

    def close(self) -> None:
        self._try_end("close")

    def _try_end(self, wish: str) -> None:
        if self._is_open:
            with suppress(RisemlError):
                self._end_write(wish)

    def _end_write(self, wish: str) -> dict[str, Any]:
        self._is_open = False
        with self._helpers.guard(self._request, self._session):
            answer = self._session.ask(do=wish)
        self._helpers.give_back(self._request, self._session)
        return answer


def _start_helper(helpers: Helpers, request: StorageRequest) -> HelperSession:
    """Start a helper with the first image that can run it.

    Raises:
        NotFound: the folder does not exist on the host.
        EngineError: the host has no image with a Python 3.7 or newer.
    """
    failure: RisemlError | None = None
    deadline = time.monotonic() + _SEARCH
    with helpers.engine.api() as api:
        images = _list_images(api, request.image)
    for image in images:
        if time.monotonic() > deadline:
            break
        try:
            return _start_with(helpers, request, image)
        except FilesError as error:
            raise describe_trouble(error, request.title) from None
        except EngineError as error:
            if "bind source path does not exist" in error.message:
                raise NotFound(f"{request.title} does not exist on its host: {request.mount.source}") from None
            log.debug("no helper for %s with %s: %s", request.title, image, error.message)
            failure = error
    why = "the host has no image" if failure is None else failure.message
    raise EngineError(
        f"the files of {request.title} cannot be reached: {why}",
        "they are read with the Python of an image: `docker pull python:3.11-slim` on the host gives it one",
    )


def _list_images(api: docker.APIClient, first: str) -> list[str]:
    """Return images to try: the named one first, then those of the host."""
    names = choose_names(api.images())
    with suppress(ImageNotFound):
        if first:
            api.inspect_image(first)
            names.insert(0, first)
    return names


def choose_names(images: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return images that may have Python, from the engine's list: those of Python, then the newest others.

    Layers of code are left out: one may belong to another server, which could not remove it while a helper uses it.
    """
    newest_first = sorted(images, key=lambda image: -int(image.get("Created") or 0))
    names = [tag for image in newest_first for tag in (image.get("RepoTags") or [])[:1]]
    names = [name for name in names if not name.startswith(("<none>", *WITHOUT_PROGRAMS))]
    return sorted(names, key=lambda name: not name.startswith("python:"))


def _start_with(helpers: Helpers, request: StorageRequest, image: str) -> HelperSession:
    with helpers.engine.api(patient=True) as api:
        name = helpers.make(api, "files", _make_request(request, image))
        try:
            path = f"/containers/{name}/attach?stream=1&stdin=1&stdout=1&stderr=1"
            stream, received = helpers.engine.open_stream(path, {})
            session = HelperSession(stream, received, lambda: helpers.registry.drop_name(name))
            try:
                api.start(name)
                session.receive_answer(_START)
                session.begin()
            except BaseException:
                session.close()
                raise
        except BaseException:
            helpers.discard(api, name)
            raise
    return session


def _make_request(request: StorageRequest, image: str) -> dict[str, Any]:
    """Return the helper's container. Without a user it begins as root, only to become the owner of the mount."""
    mounts = (request.mount,)
    user = "0:0" if request.user is None else f"{request.user[0]}:{request.user[1]}"
    return {
        "Image": image,
        "Entrypoint": ["python3", "-IS", "-c", read_file_service()],
        "Cmd": [request.mount.target, request.below, "owner" if request.user is None else "user"],
        "User": user,
        "WorkingDir": "/",
        "Env": ["LC_ALL=C.UTF-8", "PYTHONUTF8=1"],
        "OpenStdin": True,
        "StdinOnce": True,
        "AttachStdin": True,
        "AttachStdout": True,
        "AttachStderr": True,
        "HostConfig": {
            "Mounts": describe_mounts(mounts),
            "Binds": describe_binds(mounts),
            "NetworkMode": "none",
            "CapDrop": ["ALL"],
            "CapAdd": ["SETUID", "SETGID"] if request.user is None else [],
            "SecurityOpt": ["no-new-privileges"],
            "ReadonlyRootfs": True,
            "PidsLimit": 64,
            "Memory": 512 * 2**20,
            "AutoRemove": True,
            "LogConfig": {"Type": "none"},
        },
    }
