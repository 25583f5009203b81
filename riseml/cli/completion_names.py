"""Complete IDs of experiments and jobs for a shell: fast, and silent without a result.

A completion has to come within 0.1 s. httpx and typer alone take longer to import, so this module sends its one
request itself. It starts no server, and makes the same checks as every other command before it asks one.
"""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from riseml.base.errors import RisemlError
from riseml.base.settings import read_settings
from riseml.client.exchange import check_peer, read_address

_PATIENCE = 0.5  # seconds for the whole answer; a typing user does not wait longer
_MOST_BYTES = 1 << 18
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""Names that are safe in a shell: some shells evaluate the words that they complete."""


def print_names(kind: str, words: Sequence[str], environ: Mapping[str, str]) -> None:
    """Print the names that begin with the last word, each on its line.

    Args:
        wanted: `running` for experiments that have not ended, `all` for every one.
        words: the arguments of the command; only the last one counts.
        environ: RISEML_HOME and the other settings.
    """
    prefix = words[-1] if words else ""
    print(*find_names(prefix, environ, running=kind == "running"), sep="\n", end="")


def find_names(prefix: str, environ: Mapping[str, str], *, running: bool) -> list[str]:
    """Return the names from the user's own server; none when it does not run or does not answer at once.

    A server at RISEML_SERVER is left out: connecting takes longer than a completion may.
    """
    try:
        address = read_address(read_settings(environ), environ)
        if address.socket is None:
            return []
        query = f"/v1/names?prefix={quote(prefix[:100])}&running={str(running).lower()}"
        names = json.loads(_ask_server(address.socket, query))["names"]
        return [name for name in names if isinstance(name, str) and _NAME.fullmatch(name)]
    except (RisemlError, OSError, ValueError, LookupError, TypeError, RecursionError):
        return []  # print no message: it would appear in the line that the user types


def _ask_server(path: Path, query: str) -> bytes:
    """Return the body of an answer.

    Raises:
        OSError: the server does not answer in time, or closes the connection.
        ValueError: it answers anything else than a short success.
    """
    end = time.monotonic() + _PATIENCE
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(_PATIENCE)
        sock.connect(str(path))
        check_peer(sock, path)
        sock.sendall(f"GET {query} HTTP/1.0\r\nHost: riseml\r\n\r\n".encode())
        head, _, body = b"".join(_receive_answer(sock, end)).partition(b"\r\n\r\n")
    if head.split(b" ", 2)[1:2] != [b"200"]:
        raise ValueError("the server refuses")
    return body


def _receive_answer(sock: socket.socket, end: float) -> Iterator[bytes]:
    size = 0
    while True:
        sock.settimeout(max(0.001, end - time.monotonic()))
        piece = sock.recv(1 << 16)
        size += len(piece)
        if size > _MOST_BYTES:
            raise ValueError("the answer is too long")
        if not piece:
            return
        yield piece
