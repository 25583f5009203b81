"""The builder of environments on nodes: for an old Python, with nothing but its standard library."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

from riseml.executors.environments import environment_builder

BUILDER = Path(str(environment_builder.__file__))


def test_the_builder_of_environments_is_written_for_python_3_6() -> None:
    ast.parse(BUILDER.read_text(), feature_version=(3, 6))


def test_the_builder_of_environments_imports_nothing_but_the_standard_library() -> None:
    tree = ast.parse(BUILDER.read_text())
    imported = {part.name for node in ast.walk(tree) if isinstance(node, ast.Import) for part in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported <= set(sys.stdlib_module_names)
