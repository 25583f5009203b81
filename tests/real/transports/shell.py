"""A very small image: a shell and `sleep` of this machine, with the libraries that they need."""

from __future__ import annotations

import io
import re
import subprocess
import tarfile
from pathlib import Path


def pack_shell() -> bytes:
    """Return the image's files as a tar."""
    programs = ("/bin/sh", "/bin/sleep")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path in sorted({*programs, *(library for program in programs for library in _libraries(program))}):
            tar.add(Path(path).resolve(), arcname=path.lstrip("/"))
    return buffer.getvalue()


def _libraries(program: str) -> list[str]:
    said = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    return re.findall(r"(/\S+) \(0x", said)
