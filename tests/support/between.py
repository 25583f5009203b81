"""A man in the middle of a connection over TLS."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.authority import Authority
from tests.support.waiting import DEADLINE


@contextmanager
def stand_between(folder: Path, received: list[bytes]) -> Iterator[int]:
    """Answer TLS with a certificate of another authority for the same name; yield the port."""
    pair = Authority(folder, "between").sign("between", ("localhost",))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.cert, pair.key)
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                plain, _ = listener.accept()
            except OSError:
                return
            plain.settimeout(DEADLINE)
            try:
                with context.wrap_socket(plain, server_side=True) as connection:
                    received.append(connection.recv(1 << 16))
            except OSError:
                plain.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(DEADLINE)
