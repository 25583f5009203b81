"""The program of a helper container: it serves the files below one folder over its standard input and output.

Each message is a letter, a size of four bytes, and that many bytes: `J` a JSON object, `D` a part of a content, `E` the
end of a content. The server sends a `J`; the answer is one `J`, or a content. The program ends when its input ends, or
after a minute without a request.
"""

from __future__ import annotations

import json
import os
import select
import struct
import sys
from collections.abc import Callable

from riseml.job_programs.folder_contents import FileUpload, PartWriter, read_pieces
from riseml.job_programs.folder_links import make_link
from riseml.job_programs.folder_listing import list_page, remove_tree
from riseml.job_programs.folder_paths import (
    FileErrorKind,
    FilesError,
    count_free,
    enter_folder,
    make_folder,
    split_path,
)
from riseml.job_programs.folder_use import count_used

_IDLE = 60  # seconds without a request
_MOST = 1 << 26  # bytes of one message
_HEADER = struct.Struct(">cI")


def main(folder: str, below: str, user: str) -> None:
    """Serve the files of a folder `below` another one; as the `owner` of that one, or as the user of this process."""
    if user == "owner":
        owner = os.stat(folder)  # root without CAP_DAC_OVERRIDE may not open the private folder of another user
        os.setgroups([])
        os.setgid(owner.st_gid)
        os.setuid(owner.st_uid)
    root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        root = enter_folder(root, split_path(below), below)
    except FilesError as error:
        _refuse(error)
        return
    _answer(ready=1)
    while _read_exactly(1) not in (
        b"\n",
        b"",
    ):  # an engine may pass on the end of the request that opened the connection
        continue
    while select.select([0], [], [], _IDLE)[0]:
        kind, message = _receive_message()
        if kind != b"J":
            return
        _serve(root, json.loads(message))


def _serve(root: int, order: dict[str, object]) -> None:
    try:
        _SERVICES[str(order.pop("do"))](root, **order)
    except FilesError as error:
        _refuse(error)


def _serve_list(root: int, path: str, after: str | None, limit: int, deep: bool) -> None:  # noqa: FBT001  # from JSON
    page = list_page(root, path, after, limit, deep=deep)
    _answer(at=list(page.at), entries=[list(entry) for entry in page.entries], next=page.next)


def _serve_read(root: int, path: str, start: int, etag: str | None) -> None:
    for piece in read_pieces(root, path, start, etag):
        _send_message(b"D", piece)
    _send_message(b"E", b"")


def _serve_write(root: int, **order: object) -> None:
    """Write a file: answer, then read parts up to the `J` that ends or discards it."""
    writer = PartWriter(root, FileUpload(**order))  # type: ignore[arg-type]  # the server sends its fields
    _answer(ready=1)
    trouble = None
    try:
        while True:
            kind, message = _receive_message()
            if kind == b"D" and trouble is None:
                try:
                    writer.write(message)
                except FilesError as error:
                    trouble = error
            elif kind == b"J":
                break
            elif kind != b"D":
                return
        _finish(writer, json.loads(message)["do"], trouble)
    finally:
        writer.close()


def _finish(writer: PartWriter, wish: str, trouble: FilesError | None) -> None:
    if wish == "discard":
        writer.discard()
        _answer(ready=1)
    elif wish == "close":
        _answer(ready=1)
    elif trouble is not None:
        writer.discard()
        raise trouble
    else:
        _answer(seen=list(writer.finish()))


def _serve_make(root: int, path: str) -> None:
    make_folder(root, path)
    _answer(ready=1)


def _serve_link(root: int, path: str, target: str) -> None:
    _answer(seen=list(make_link(root, path, target)))


def _serve_remove(root: int, path: str, limit: int) -> None:
    _answer(removed=list(remove_tree(root, path, limit)))


def _serve_used(root: int) -> None:
    _answer(used=count_used(root))


def _serve_free(root: int) -> None:
    _answer(free=count_free(root))


_SERVICES: dict[str, Callable[..., None]] = {
    "list": _serve_list,
    "read": _serve_read,
    "write": _serve_write,
    "folder": _serve_make,
    "link": _serve_link,
    "remove": _serve_remove,
    "free": _serve_free,
    "used": _serve_used,
}


def _refuse(error: FilesError) -> None:
    _answer(trouble=error.trouble.name, path=error.path, detail=error.detail)


def _answer(**fields: object) -> None:
    _send_message(b"J", json.dumps(fields).encode())


def _send_message(kind: bytes, message: bytes) -> None:
    out = sys.stdout.buffer
    out.write(_HEADER.pack(kind, len(message)))
    out.write(message)
    out.flush()


def _receive_message() -> tuple[bytes, bytes]:
    """Return the next message; an empty kind is the end."""
    header = _read_exactly(_HEADER.size)
    if len(header) < _HEADER.size:
        return b"", b""
    kind, size = _HEADER.unpack(header)
    if size > _MOST:
        raise FilesError(FileErrorKind.FAILED, "", "the message is too long")
    message = _read_exactly(size)
    return (kind, message) if len(message) == size else (b"", b"")


def _read_exactly(size: int) -> bytes:
    """Return `size` bytes, or fewer at the end. Without a buffer, because `main` waits for the descriptor."""
    received = bytearray()
    while len(received) < size:
        piece = os.read(0, min(1 << 20, size - len(received)))
        if not piece:
            break
        received += piece
    return bytes(received)


if __name__ == "__main__":
    main(*sys.argv[1:])
