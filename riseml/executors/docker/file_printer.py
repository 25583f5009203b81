"""The program of the helper that reads stacks: it prints files of /proc, because an image without a shell has no `cat`.

Without arguments it waits for 120 s, and ends: its container is there for that long at most, even when the server is
killed meanwhile. Each argument is the path of a file or of a folder. For each it prints blocks: a length (8 bytes,
little-endian, signed) and so many bytes of the file, or of the entries of the folder as the kernel has them. A length
of 0 or less ends a path; a negative length is the number of the error. It reads at most 63 blocks of 64 KiB of a file,
and runs nothing.

The source of the instructions, in words: `alarm(120); pause()` without arguments; else, for each argument,
`open(path, O_NONBLOCK)`, `read` or, where that answers EISDIR, `getdents64`, and `write` until the answer is 0 or less.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from riseml.executors.docker.tiny_program import Processor

LONGEST_STAY = 120
"""Seconds after which the program, and so its container, ends."""

_LENGTH = struct.Struct("<q")
_ENTRY = struct.Struct("<QqHB")  # inode, offset, length and kind of an entry, before its name

PROCESSORS = {
    "amd64": Processor(
        62,
        "488d5c2410488b3b4885ff751cbf78000000b8250000000f05b8220000000f0531ffb83c0000000f054881ec10000100"
        "488b3b4883c3084885ff74e4be0008000031d2b8020000000f0589c541bc400000004c63e885c0782989ef488d742408"
        "ba0000010031c00f0583f8eb750989efb8d90000000f054c63e841ffcc75034531ed4c892c24ba080000004d85ed7e03"
        "4c01eabf010000004889e6b8010000000f054d85ed7fb289efb8030000000f05e97bffffff",
    ),
    "arm64": Processor(
        183,
        "f3430091610240f9810200b5ff8300d1090f80d2ff7f00a9e97f01a9000080d2e1030091020080d2e80c80d2010000d4"
        "000080d2010080d2020080d2030080d2040080d2280980d2010000d4000080d2a80b80d2010000d4ff4340d1ff4300d1"
        "618640f841ffffb4600c8092020081d2030080d2080780d2010000d4f40300aa150880d2f60300aa2002f8b7e00314aa"
        "e12300912200a0d2e80780d2010000d41f5400b1c1000054e00314aae12300912200a0d2a80780d2010000d4f60300aa"
        "b50600f141000054160080d2f60300f9020180d2df0200f14d0000544200168b200080d2e1030091080880d2010000d4"
        "df0200f1ccfcff54e00314aa280780d2010000d4d7ffff17",
    ),
}
"""The instructions, by the name that an engine has for the processor of its host."""


def parse_blocks(output: bytes) -> list[bytes | None]:
    """Return the content of each path, in the order of the arguments; None: it could not be read.

    Paths whose content was cut off are missing at the end.
    """
    contents: list[bytes | None] = []
    content = b""
    at = 0
    while at + _LENGTH.size <= len(output):
        (length,) = _LENGTH.unpack_from(output, at)
        at += _LENGTH.size
        if length > 0:
            content += output[at : at + length]
            at += length
            continue
        contents.append(content if length == 0 or content else None)
        content = b""
    return contents


def list_names(entries: bytes) -> Iterator[str]:
    """Yield the names of the entries of a folder (`struct linux_dirent64`)."""
    at = 0
    while at + _ENTRY.size <= len(entries):
        length = _ENTRY.unpack_from(entries, at)[2]
        if length <= _ENTRY.size:
            return
        yield entries[at + _ENTRY.size : at + length].split(b"\0")[0].decode("utf-8", "replace")
        at += length
