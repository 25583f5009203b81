"""The revision of `riseml.wire`: what tells two states of riseml apart that have the same version.

Not in that package, whose import takes longer than the rest of a short command.
"""

from __future__ import annotations

import os
import zlib

_ADDRESSES = ("file_client.py", "server_client.py", "stream_client.py")
"""The modules of the client that have the addresses of the API."""


def read_revision() -> str:
    """Return a digest of the modules on the disk that have the shapes and the addresses. It takes half a millisecond.

    A client and a server with the same digest understand each other.
    """
    package = find_package()
    folder = os.path.join(package, "wire")
    paths = [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".py")]
    modules = []
    for path in [*paths, *(os.path.join(package, "client", name) for name in _ADDRESSES)]:
        with open(path, "rb", buffering=0) as file:
            modules.append(file.read())
    content = b"".join(modules)
    return f"{zlib.crc32(content):08x}{zlib.adler32(content):08x}"


def find_package() -> str:
    """Return the folder of the installed riseml."""
    return os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
