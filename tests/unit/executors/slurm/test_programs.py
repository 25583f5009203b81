"""The programs that run on nodes: for an old Python, and with the formats that the server reads."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from riseml.base import stream_messages
from riseml.base.names import JobName
from riseml.base.stream_messages import (
    Channel,
    ChannelData,
    ChannelEnd,
    CommandExit,
    StreamMessage,
    WindowSize,
    prefix_length,
)
from riseml.executors.environments import environment_builder
from riseml.executors.slurm.gang_folder import PROGRAMS, GangFolders, GangKey
from riseml.executors.supervision import command_runner

NAMES = [program.stem for program in PROGRAMS]
BUILDER = Path(str(environment_builder.__file__))


@pytest.mark.parametrize("program", [*PROGRAMS, BUILDER], ids=[*NAMES, BUILDER.stem])
def test_a_program_is_written_for_python_3_6(program: Path) -> None:
    ast.parse(program.read_text(), feature_version=(3, 6))


def test_the_formats_of_streams_are_one() -> None:
    read = command_runner.MessageReader()
    sent: list[StreamMessage] = [ChannelData(Channel.INPUT, b"in"), ChannelEnd(Channel.INPUT), WindowSize(33, 101)]
    (given, fields), (end, channel), (size, rows) = read.feed(b"".join(map(prefix_length, sent)))
    assert (given, fields) == (command_runner.INPUT, b"in")
    assert (end, channel) == (command_runner.END, bytes([command_runner.INPUT]))
    assert (size, command_runner.SIZE.unpack(rows)) == (command_runner.WINDOW_SIZE, (33, 101))
    said = [
        command_runner.write_message(command_runner.OUTPUT, b"out"),
        command_runner.write_message(command_runner.ERRORS, b"bad"),
        command_runner.write_message(command_runner.EXIT, command_runner.CODE.pack(7)),
    ]
    pieces = [ChannelData(Channel.OUTPUT, b"out"), ChannelData(Channel.ERRORS, b"bad"), CommandExit(7)]
    assert stream_messages.LengthPrefixed().feed(b"".join(said)) == pieces
    assert command_runner.LONGEST_PIECE == stream_messages.LONGEST_PIECE
    assert command_runner.LONGEST_MESSAGE == stream_messages.LONGEST_MESSAGE


def test_the_builder_of_environments_imports_nothing_but_the_standard_library() -> None:
    tree = ast.parse(BUILDER.read_text())
    imported = {part.name for node in ast.walk(tree) if isinstance(node, ast.Import) for part in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported <= set(sys.stdlib_module_names)


@pytest.mark.parametrize("name", NAMES)
def test_a_program_on_the_shared_folder_imports_nothing_but_the_standard_library(name: str, tmp_path: Path) -> None:
    folder = GangFolders(tmp_path).open_gang(GangKey(4, 1))
    folder.make()
    folder.write_gang({"token": "t"}, {JobName("train"): {"token": "t"}})
    imported: set[str] = set()
    for node in ast.walk(ast.parse((folder.path / f"{name}.py").read_text())):
        imported |= {part.name for part in node.names} if isinstance(node, ast.Import) else set()
        imported |= {str(node.module)} if isinstance(node, ast.ImportFrom) else set()
    assert imported - set(NAMES) <= set(sys.stdlib_module_names)
