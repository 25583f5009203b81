"""What a container shows of the files that its job wrote: a list by its shell, and archives."""

from __future__ import annotations

import base64
import io
import json
import tarfile
from collections.abc import Iterator
from typing import Any

import docker
import pytest
import requests
from docker.errors import NotFound

from riseml.base.names import JobName
from riseml.executors.docker import written_files
from riseml.executors.docker.written_files import ListedFile, parse_list, read_container_files
from riseml.executors.written_files import Unread, WrittenRequest
from riseml.files.archives.entries import ArchiveEntry, EntryKind
from riseml.job_programs.group_shell import LISTING_END
from riseml.model import JobKey
from riseml.spec.scalars.output_patterns import parse_output_pattern

KEY = JobKey(1, JobName("train"), 1)
START = 1_800_000_000
PROJECT = {name: ArchiveEntry(name, EntryKind.FILE, 4, 1_700_000_000) for name in ("train.py", "log.csv", "older.csv")}


class Engine(docker.APIClient):
    """Gives archives of one container, and its list of files if there is one; it has no connection."""

    def __init__(self, archives: dict[str, bytes], listed: bytes | None = None) -> None:
        self.archives = archives
        self.listed = listed
        if listed is not None:
            archives["/code/.riseml/written"] = pack(("written", listed, {}))
        self._version = "1.41"
        self.base_url = "http://engine"
        self.timeout = 1
        self.fetched: list[str] = []

    def head(self, *_: Any, **_options: Any) -> requests.Response:
        answer = requests.Response()
        answer.status_code = 404 if self.listed is None else 200
        stat = {"name": "written", "size": len(self.listed or b""), "mode": 0o644, "mtime": "", "linkTarget": ""}
        answer.headers["X-Docker-Container-Path-Stat"] = base64.b64encode(json.dumps(stat).encode()).decode()
        return answer

    def inspect_container(self, _: Any) -> dict[str, Any]:
        # An engine with much to do notes the start after the job has written its files.
        times = {"Created": "2027-01-15T08:00:00.9Z", "State": {"StartedAt": "2027-01-15T08:00:09Z"}}
        return {**times, "Config": {"Env": ["A=b", "HOME=/tmp/home"]}}

    def get_archive(self, *args: Any, **_options: Any) -> tuple[Iterator[bytes], dict[str, Any]]:
        path = args[1]
        self.fetched.append(path.decode())
        if path.decode() not in self.archives:
            raise NotFound("", None, "Could not find the file")
        data = self.archives[path.decode()]
        return (data[start : start + 700] for start in range(0, len(data), 700)), {}


def pack(*members: tuple[str, bytes | None, dict[str, Any]]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content, fields in members:
            member = tarfile.TarInfo(name)
            member.mtime, member.size = START, len(content or b"")
            for field, value in fields.items():
                setattr(member, field, value)
            tar.addfile(member, io.BytesIO(content or b""))
    return buffer.getvalue()


def read(engine: Engine, *wanted: str) -> list[tuple[str, object]]:
    """Return what was found: contents of wanted files, targets of links, else sizes."""
    order = WrittenRequest(KEY, tuple(map(parse_output_pattern, wanted)), "/else", lambda: PROJECT)
    found: list[tuple[str, object]] = []
    for one in read_container_files(engine, "c1", order):
        if isinstance(one, Unread):
            found.append(("", one.reason))
        else:
            content = None if one.content is None else b"".join(one.content)
            path = f"~/{one.path}" if one.is_in_home else one.path
            found.append((path, one.target if content is None and one.target else content or one.size))
    return found


def test_a_list_gives_sizes_and_links_and_leaves_out_what_is_no_path() -> None:
    text = b"""-rw-r--r-- 1 0 0 5000000 2026-11-27 18:55:01.123456789 +0000 ./model.pt
lrwxrwxrwx 1 0 0       8 2026-11-27 18:55:00 +0000 ./last.pt -> model.pt
-rw-r--r--+ 1 1000 1000 7 2026-11-27 18:55 ./a b/c -> d
-rw-r--r--    1 0        0               3 1970-01-01 00:01:00 +0000 /tmp/home/runs/x ./y
-rw-r--r-- 1 0 0 6 Nov 27 18:55 ./older list
prw-r--r-- 1 0 0 0 2026-11-27 18:55:00 +0000 ./pipe
-rw-r--r-- 1 0 0 5 2026-11-27 18:55:00 +0000 ./../../etc/passwd
-rw-r--r-- 1 0 0 5 2026-11-27 18:55:00 +0000 /tmp/home/../x
-rw-r--r-- 1 0 0 5 2026-11-27 18:55:00 +0000 /etc/passwd
-rw-r--r-- 1 0 0 x 2026-11-27 18:55:00 +0000 ./y
-rw-r--r-- 1 0 0 4 2026-99-99 18:55:00 +0000 ./no date
-rw-r--r-- 1 0 0 9 2026-11-27 18:55:00 +0000 ./\xff%
"""
    listed = parse_list(text)
    assert {path: file.size for path, file in listed.files.items()} == {
        "model.pt": 5_000_000,
        "last.pt": None,
        "a b/c -> d": 7,
        "older list": 6,
        "no date": 4,
        "%FF%25": 9,
    }
    assert [listed.files[path].mtime for path in ("model.pt", "last.pt", "older list", "no date")] == [
        1_795_805_701,
        None,
        None,
        None,
    ]
    assert listed.home_files == {"runs/x ./y": ListedFile(3, 60)}


def test_a_file_of_the_project_with_its_old_size_and_another_time_is_written() -> None:
    lines = {
        "./train.py": "2023-11-14 22:13:20.5 +0000",  # as it was sent: 1,700,000,000
        "./log.csv": "2027-01-15 08:00:05 +0000",
        "./older.csv": "Jan 15 08:00",  # the list of an older riseml has no year
        "/tmp/home/runs/a": "2027-01-15 08:00:05 +0000",
        "/tmp/home/.keras/models/b": "2027-01-15 08:00:05 +0000",
        "/tmp/home/nltk_data/c": "2027-01-15 08:00:05 +0000",
        "/tmp/home/wanted/d": "2027-01-15 08:00:05 +0000",
    }
    text = "".join(f"-rw-r--r-- 1 0 0 4 {time} {path}\n" for path, time in lines.items())
    engine = Engine({"/tmp/home/wanted": pack(("wanted/d", b"1234", {}))}, text.encode() + LISTING_END)
    assert read(engine, "~/wanted") == [("log.csv", 4), ("~/runs/a", 4), ("wanted/d", b"1234")]


def test_a_name_with_a_line_break_is_one_entry_of_a_list() -> None:
    text = b"""-rw-r--r-- 1 0 0 5 Nov 27 18:55 ./two
lines.pt
-rw-r--r-- 1 0 0 6 Nov 27 18:55 ./
-
lrwxrwxrwx 1 0 0 9 Nov 27 18:55 ./to
two -> two
lines.pt
"""
    sizes = {path: file.size for path, file in parse_list(text).files.items()}
    assert sizes == {"two\nlines.pt": 5, "\n-": 6, "to\ntwo": None}


def test_a_job_without_a_list_has_its_working_folder_read() -> None:
    folder = pack(
        ("code", None, {"type": tarfile.DIRTYPE}),
        ("code/train.py", b"old\n", {"mtime": 1_700_000_000}),
        ("code/of-the-image", b"x", {"mtime": START - 100}),
        ("code/__pycache__/x.pyc", b"x", {}),
        ("code/model.pt", b"model", {}),
        ("code/again.pt", None, {"type": tarfile.LNKTYPE, "linkname": "code/model.pt"}),
        ("code/last.pt", None, {"type": tarfile.SYMTYPE, "linkname": "model.pt"}),
        ("code/pipe.pt", None, {"type": tarfile.FIFOTYPE}),
        ("code/device.pt", None, {"type": tarfile.CHRTYPE}),
        ("code/../../etc/x.pt", b"x", {}),
        ("code/other.txt", b"1234", {}),
    )
    engine = Engine({"/code": folder, "/code/again.pt": pack(("again.pt", b"model", {}))})
    assert read(engine, "*.pt") == [
        ("model.pt", b"model"),
        ("last.pt", "model.pt"),
        ("other.txt", 4),
        ("again.pt", b"model"),
    ]
    home = pack(("home", None, {"type": tarfile.DIRTYPE}), ("home/a.pt", b"a", {}), ("home/.cache/b", b"b", {}))
    assert read(Engine({"/code": folder, "/tmp/home": home})) == [("model.pt", 5), ("other.txt", 4), ("~/a.pt", 1)]


@pytest.mark.parametrize(
    ("listed", "found", "fetched"),
    [
        (b"\n", [], []),
        (b"-rw-r--r-- 1 0 0 5 Nov 27 18:55 ./model.pt\n\n", [("model.pt", 5)], ["/code/.riseml/written"]),
        (b"", [("other.txt", 4)], ["/code", "/tmp/home"]),
        (b"-rw-r--r-- 1 0 0 5 Nov 27 18:55 ./mo", [("other.txt", 4)], ["/code/.riseml/written", "/code", "/tmp/home"]),
        (b"-rw-r--r-- 1 0 0 5 Nov 27 18:55 ./a\n", [("other.txt", 4)], ["/code/.riseml/written", "/code", "/tmp/home"]),
    ],
    ids=["empty", "whole", "killed before the first file", "killed in a line", "killed between two lines"],
)
def test_only_a_list_with_its_end_is_believed(
    listed: bytes, found: list[tuple[str, object]], fetched: list[str]
) -> None:
    engine = Engine({"/code": pack(("code/other.txt", b"1234", {}))}, listed)
    assert read(engine) == found
    assert engine.fetched == fetched


def test_a_large_working_folder_is_not_read_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written_files, "MOST_SCANNED", 1_000)
    folder = pack(("code/a", b"x" * 900, {}), ("code/b", b"x" * 900, {}), ("code/c.pt", b"x", {}))
    found = read(Engine({"/code": folder}), "*.pt")
    assert found[:2] == [("a", 900), ("b", 900)]
    assert found[2][0] == ""
    assert len(found) == 3


def test_no_more_than_a_bound_is_read_whatever_a_job_puts_beside_what_is_wanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(written_files, "MOST_READ", 5 << 10)
    out = pack(("out/a.pt", b"a", {}), ("out/hole", bytes(9_000), {}), ("out/b.pt", b"b", {}))
    engine = Engine({"/workspace/out": out, "/workspace/more": pack(("more", b"m", {}), ("more/x", b"x", {}))})
    found = read(engine, "/workspace/out/*.pt")
    assert found[0] == ("workspace/out/a.pt", b"a")
    assert [path for path, _ in found[1:]] == [""]
    assert found[1][1] == "its folders have more than 5 KiB"


def test_files_of_other_places_count_when_they_are_new() -> None:
    engine = Engine(
        {
            "/code": pack(("code", None, {"type": tarfile.DIRTYPE})),
            "/tmp/home/results": pack(("results/a.csv", b"a", {}), ("results/old.csv", b"o", {"mtime": START - 10})),
            "/workspace/out": pack(("out/deep/b", b"b", {})),
        }
    )
    found = read(engine, "~/results/*.csv", "/workspace/out", "~/missing")
    assert found == [("results/a.csv", b"a"), ("workspace/out/deep/b", b"b")]
    assert engine.fetched == ["/code", "/tmp/home", "/tmp/home/results", "/workspace/out", "/tmp/home/missing"]
