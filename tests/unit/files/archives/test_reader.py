"""Plain archives of every writer are read; whatever readers of tar could understand differently is refused."""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
import tracemalloc
from pathlib import Path

import pytest

from riseml.base.errors import UsageError
from riseml.files.archives.entries import ArchiveEntry, EntryKind
from riseml.files.archives.reader import read_content, read_entries
from tests.support.archives import END, craft_member, craft_pax, seal_header

LONG = "long/" * 40 + "name"
GNU = {"magic": b"ustar  \0"}


def read(archive: bytes) -> list[ArchiveEntry]:
    return [entry for entry, _ in read_entries(io.BytesIO(archive))]


def project(folder: Path) -> None:
    (folder / LONG).parent.mkdir(parents=True)
    (folder / LONG).write_text("deep")
    (folder / "größe.txt").write_text("text")
    (folder / "run.sh").write_text("x" * 1000)
    (folder / "run.sh").chmod(0o750)
    (folder / "empty").mkdir()
    (folder / "link").symlink_to(LONG)


EXPECTED = [
    ("empty", EntryKind.FOLDER, 0, False, ""),
    ("größe.txt", EntryKind.FILE, 4, False, ""),
    ("link", EntryKind.LINK, 0, False, LONG),
    (LONG, EntryKind.FILE, 4, False, ""),
    ("run.sh", EntryKind.FILE, 1000, True, ""),
]


def describe(archive: bytes) -> list[tuple[str, EntryKind, int, bool, str]]:
    return sorted(
        (entry.path, entry.kind, entry.size, entry.executable, entry.target)
        for entry in read(archive)
        if entry.path == "empty" or entry.kind is not EntryKind.FOLDER
    )


@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_an_archive_of_tarfile_is_read(tmp_path: Path, form: int) -> None:
    project(tmp_path)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form) as tar:
        for path in sorted(tmp_path.iterdir()):
            tar.add(path, path.name)
    assert describe(buffer.getvalue()) == EXPECTED


@pytest.mark.parametrize("form", ["gnu", "pax"])
def test_an_archive_of_gnu_tar_is_read(tmp_path: Path, form: str) -> None:
    if shutil.which("tar") is None:  # a machine for `make unit` may have none; Debian always has it
        pytest.skip("this machine has no tar")
    project(tmp_path)
    plain = ["--pax-option=delete=atime,delete=ctime"] if form == "pax" else []
    names = sorted(path.name for path in tmp_path.iterdir())
    made = subprocess.run(["tar", f"--format={form}", *plain, "-cf", "-", *names], cwd=tmp_path, capture_output=True)
    assert describe(made.stdout) == EXPECTED


def test_a_content_is_read_from_its_place() -> None:
    archive = io.BytesIO(craft_member(b"a", b"x" * 700) + craft_member(b"b", b"text") + END)
    assert [b"".join(read_content(archive, at, entry.size)) for entry, at in read_entries(archive)] == [
        b"x" * 700,
        b"text",
    ]
    assert read_content(archive, 0, 10**9).__next__().startswith(b"a\0")
    with pytest.raises(UsageError, match="is cut off"):
        list(read_content(archive, 0, 10**9))


NO_NUMBER = "a field that is not a number"
OTHER_FIELDS = "fields of another format"
REFUSED = {
    "nothing": (b"", "is cut off"),
    "no end": (craft_member(b"a"), "is cut off"),
    "half an end": (craft_member(b"a") + bytes(512), "is cut off"),
    "an end that is not a block": (craft_member(b"a") + END + b"\0", "is cut off"),
    "a member after the end": (craft_member(b"a") + END + craft_member(b"b") + END, "it has bytes after its end"),
    "less content than it says": (craft_member(b"a", size=b"00000002000\0") + END, "is cut off"),
    "a wrong checksum": (craft_member(b"a").replace(b"a\0", b"b\0", 1) + END, "wrong checksum"),
    "the oldest format": (craft_member(b"a", magic=b"") + END, "neither of POSIX nor of GNU"),
    "a negative size": (craft_member(b"a", size=b"\xff" * 12) + END, NO_NUMBER),
    "a size with a sign": (craft_member(b"a", size=b"+0000000000\0") + END, NO_NUMBER),
    "a size with an end inside": (craft_member(b"a", size=b"0\x0000000001\0") + END, NO_NUMBER),
    "an owner of blanks": (craft_member(b"a", uid=b" " * 8) + END, NO_NUMBER),
    "an owner of letters": (craft_member(b"a", uid=b"root") + END, NO_NUMBER),
    "star's trailer": (craft_member(b"a", rest=b"\0" * 8 + b"tar\0") + END, OTHER_FIELDS),
    "a prefix of GNU": (craft_member(b"a", prefix=b"b", **GNU) + END, OTHER_FIELDS),
    "a name after its name": (craft_member(b"a\0b") + END, "bytes after its end"),
    "a file with a target": (craft_member(b"a", target=b"b") + END, "its type does not have"),
    "a link with a content": (craft_member(b"a", b"x", b"2", target=b"b") + END, "its type does not have"),
    "a link to nowhere": (craft_member(b"a", kind=b"2") + END, "no target"),
    "a file that is a folder": (craft_member(b"a/") + END, "shortest form"),
    "a dot": (craft_member(b"./a") + END, "shortest form"),
    "no name": (craft_member(b"") + END, "leads out"),
    "a name of 256 bytes": (craft_pax(path=b"n" * 256) + craft_member(b"a") + END, "too long"),
    "a path of 5000 bytes": (craft_pax(path=b"n/" * 2500 + b"n") + craft_member(b"a") + END, "too long"),
    "a global header": (craft_member(b"pax", b"11 path=x\n", b"g") + END, "neither a file"),
    "a sparse file's real name": (craft_pax(GNU__sparse__name=b"b") + craft_member(b"a") + END, "'GNU.sparse.name'"),
    "a sparse file's real size": (craft_pax(GNU__sparse__realsize=b"9") + craft_member(b"a") + END, "GNU.sparse"),
    "an attribute": (craft_pax(SCHILY__xattr__user__a=b"b") + craft_member(b"a") + END, "SCHILY.xattr.user.a"),
    "an owner": (craft_pax(uid=b"0") + craft_member(b"a") + END, "'uid'"),
    "another size": (craft_pax(size=b"5") + craft_member(b"a", b"12345") + END, "another size"),
    "a size that fits": (craft_pax(size=b"0") + craft_member(b"a") + END, "another size"),
    "a time of letters": (craft_pax(mtime=b"now") + craft_member(b"a") + END, "not a number"),
    "a charset": (craft_pax(hdrcharset=b"ISO-IR 8859 1 1998") + craft_member(b"a") + END, "hdrcharset"),
    "a pax header of a GNU member": (craft_pax(path=b"b") + craft_member(b"a", **GNU) + END, "another format"),
    "two pax headers": (craft_pax(path=b"b") + craft_pax(path=b"c") + craft_member(b"a") + END, "there are two"),
    "a pax header at the end": (craft_member(b"a") + craft_pax(path=b"b") + END, "has no member"),
    "a key twice": (craft_member(b"p", b"10 path=b\n10 path=c\n", b"x") + craft_member(b"a") + END, "malformed"),
    "a record of another length": (craft_member(b"p", b"11 path=b\n", b"x") + craft_member(b"a") + END, "malformed"),
    "an empty pax header": (craft_member(b"p", b"", b"x") + craft_member(b"a") + END, "is empty"),
    "a path with a zero": (craft_pax(path=b"a\0b") + craft_member(b"a") + END, "contains a NUL byte"),
    "a long name of POSIX": (craft_member(b"l", b"b\0", b"L") + craft_member(b"a") + END, "malformed"),
    "two long names": (2 * craft_member(b"l", b"b\0", b"L", **GNU) + craft_member(b"a", **GNU) + END, "malformed"),
    "a long name without end": (craft_member(b"l", b"b", b"L", **GNU) + craft_member(b"a", **GNU) + END, "malformed"),
    "a long target of a file": (
        craft_member(b"l", b"b\0", b"K", **GNU) + craft_member(b"a", **GNU) + END,
        "not a link",
    ),
    "a long name and a pax header": (
        craft_member(b"l", b"b\0", b"L", **GNU) + craft_pax(path=b"c") + craft_member(b"a") + END,
        "mixes",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_archive_that_is_not_plain_is_refused(name: str) -> None:
    archive, words = REFUSED[name]
    with pytest.raises(UsageError) as raised:
        read(archive)
    assert words in raised.value.message
    assert raised.value.hint


def test_a_header_that_claims_gigabytes_takes_no_memory() -> None:
    huge = craft_member(b"p", b"10 path=b\n", b"x", size=b"77777777777\0")
    tracemalloc.start()
    try:
        with pytest.raises(UsageError, match="too long"):
            read(huge + bytes(2**20))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3 * 2**20


def test_a_time_with_a_fraction_or_before_1970_is_read_in_seconds() -> None:
    times = [b"12.75", b"-3.5", b"99999999999"]
    archive = b"".join(craft_pax(mtime=text) + craft_member(b"a") for text in times) + END
    assert [entry.mtime for entry in read(archive)] == [12, 0, 8**11 - 1]


def test_a_size_above_eight_gigabytes_is_read_in_both_forms() -> None:
    pax = craft_pax(size=b"10000000000") + craft_member(b"a")
    header = bytearray(craft_member(b"a", **GNU))
    header[124:136] = b"\x80" + (10**10).to_bytes(11, "big")
    for archive in (pax, seal_header(bytes(header))):
        entry, _ = next(read_entries(io.BytesIO(archive)))
        assert entry.size == 10**10
