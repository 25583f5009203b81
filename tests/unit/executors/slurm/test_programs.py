"""The programs that run on nodes: for an old Python, and with the formats that the server reads."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from riseml.executors import log_reader
from riseml.executors.process import supervisor
from riseml.executors.slurm import gang_lines, gang_records, gang_supervisor, role_wrapper
from riseml.executors.slurm.gang_folder import PROGRAMS, GangFolders, GangKey
from riseml.names import JobName

SOURCES = {
    module.__name__.rpartition(".")[2]: Path(str(module.__file__))
    for module in (gang_supervisor, gang_lines, gang_records, role_wrapper)
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_written_for_python_3_6(name: str) -> None:
    ast.parse(SOURCES[name].read_text(), feature_version=(3, 6))


def test_the_formats_of_logs_are_one() -> None:
    assert log_reader.HEADER.format == supervisor.HEADER.format == role_wrapper.HEADER.format


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_on_the_shared_folder_imports_nothing_but_the_standard_library(name: str, tmp_path: Path) -> None:
    folder = GangFolders(tmp_path).open_gang(GangKey(4, 1))
    folder.make()
    folder.write_gang({"token": "t"}, {JobName("train"): {"token": "t"}})
    imported: set[str] = set()
    for node in ast.walk(ast.parse((folder.path / f"{name}.py").read_text())):
        imported |= {part.name for part in node.names} if isinstance(node, ast.Import) else set()
        imported |= {str(node.module)} if isinstance(node, ast.ImportFrom) else set()
    assert imported - set(PROGRAMS) <= set(sys.stdlib_module_names)
