"""What a helper container runs, without the container; and the host in memory, which has the same files."""

from __future__ import annotations

import ast
import hashlib
import os
import socket
import struct
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from riseml.base.errors import Conflict, EngineError, NotFound, Refused
from riseml.base.names import HostName
from riseml.executors.capabilities import StorageRequest
from riseml.executors.docker.helpers import HelperRegistry, Helpers
from riseml.executors.docker.storage_helper import HelperFiles, HelperSession, StorageHelpers, choose_names
from riseml.executors.transports.engine_client import Engine
from riseml.files.storage_files import ListRequest, StorageFiles
from riseml.job_programs import read_file_service
from riseml.job_programs.folder_contents import FileUpload
from riseml.model import Capacity, Mount
from tests.support.memory_executor import MemoryExecutor

ORDER = StorageRequest("output://4", Mount("root", "/output"), "me/4")
BIG = bytes(range(256)) * 10_000


def start_program(folder: Path, stack: ExitStack) -> HelperSession:
    """Run the program with the pipes of a process; an engine would frame its outputs."""
    command = [sys.executable, "-IS", "-c", read_file_service(), str(folder), ORDER.below, "user"]
    program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    near, far = socket.socketpair()

    def frame() -> None:
        assert program.stdout is not None
        with suppress(OSError):
            while data := program.stdout.read(65536):
                far.sendall(struct.pack(">BxxxI", 1, len(data)) + data)
            far.shutdown(socket.SHUT_WR)

    def feed() -> None:
        assert program.stdin is not None
        with suppress(OSError):
            while data := far.recv(65536):
                program.stdin.write(data)
        program.stdin.close()

    threads = [threading.Thread(target=one, daemon=True) for one in (frame, feed)]
    for thread in threads:
        thread.start()

    def end() -> None:
        session.close()
        for thread in threads:
            thread.join()
        program.wait()
        assert program.stdout is not None
        program.stdout.close()
        far.close()

    session = HelperSession(near, b"", lambda: None)
    stack.callback(end)
    session.receive_answer(30)
    near.sendall(b"{}")  # the rest of a request
    session.begin()
    return session


@pytest.fixture(params=["helper", "memory"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StorageFiles]:
    (tmp_path / "me/4/sub").mkdir(parents=True)
    (tmp_path / "me/4/x").write_bytes(BIG)
    (tmp_path / "me/4/out").symlink_to("/etc")
    with ExitStack() as stack:
        if request.param == "memory":
            host = MemoryExecutor(HostName("h1"), Capacity(1, 1))
            with pytest.raises(EngineError):
                host.open_storage(ORDER)
            host.storages["root"] = tmp_path
            yield host.open_storage(ORDER)
        else:
            helpers = StorageHelpers(Helpers(Engine("unix:///none"), "s", HelperRegistry()))
            helpers.give_back(ORDER, start_program(tmp_path, stack))
            yield HelperFiles(helpers, ORDER)


def test_a_helper_serves_files(files: StorageFiles, tmp_path: Path) -> None:
    page = files.list_files(ListRequest("", limit=2, deep=True))
    assert ([(one.path, one.kind) for one in page.entries], page.next) == ([("out", "link"), ("sub", "folder")], "sub")
    header, *pieces, proof = files.read_file("x", 0, None)
    assert b"".join(pieces) == BIG
    assert (int(header.split()[0]), proof) == (len(BIG), b"0" + hashlib.sha256(BIG).digest())
    for path, error in (("none", NotFound), ("out/passwd", Refused), ("out", Refused)):
        with pytest.raises(error):
            list(files.read_file(path, 0, None))
    writer = files.write_file(FileUpload("sub/y", "0" * 16, 3))
    writer.write(b"abc" + hashlib.sha256(b"abc").digest())
    assert writer.finish().size == 3
    writer.close()
    writer = files.write_file(FileUpload("sub/z", "0" * 16, 3))
    writer.write(b"abc" + bytes(32))
    with pytest.raises(Conflict):
        writer.finish()
    writer.discard()
    writer.close()
    files.make_folder("deep/er")
    assert (tmp_path / "me/4/deep/er").is_dir()
    assert (files.make_link("sub/last", "y").kind, os.readlink(tmp_path / "me/4/sub/last")) == ("link", "y")
    with pytest.raises(Refused, match="leads out"):
        files.make_link("sub/away", "../../x")
    assert (files.remove_files("deep", 10).folders, files.remove_files("out", 10).files) == (2, 1)
    assert [one.path for one in files.list_files(ListRequest("sub")).entries if one.path != "z"][:1] != []
    assert (tmp_path / "me/4/sub/y").read_bytes() == b"abc"


def test_a_helper_is_never_made_of_a_layer_of_code() -> None:
    names = [
        "riseml/code:1",
        "me/env:2",
        "riseml/sync:1",
        "riseml/empty:1",
        "<none>:<none>",
        "python:3.12",
        "riseml/environment:4",
    ]
    images = [{"Created": number, "RepoTags": [name]} for number, name in enumerate(names)]
    assert choose_names([*images, {"Created": 9, "RepoTags": None}]) == [
        "python:3.12",
        "riseml/environment:4",
        "me/env:2",
    ]


def test_the_parts_of_the_program_have_different_names() -> None:
    names: Counter[str] = Counter()
    for node in ast.parse(read_file_service()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names[node.name] += 1
        elif isinstance(node, ast.Assign):
            names.update(one.id for one in node.targets if isinstance(one, ast.Name))
    assert {name for name, count in names.items() if count > 1} == set()
