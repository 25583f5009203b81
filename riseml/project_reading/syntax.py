"""Python code as a tree: names, literals and strings. No code of a project is compiled or executed."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Mapping

from riseml.base.records import dataclass


@dataclass(frozen=True, slots=True)
class SourceCode:
    """The tree of one file, with what its names mean."""

    path: str  # in the project
    tree: ast.Module
    names: Mapping[str, str]  # name in the file -> whole name of what is imported
    constants: Mapping[str, ast.expr]  # name -> its value, assigned once at the top
    nodes: tuple[ast.AST, ...]  # all of the tree, the outer ones first
    calls: tuple[ast.Call, ...]  # all of the tree, by line

    def whole_name(self, node: ast.AST) -> str:
        """Return `torch.distributed.init_process_group` for `dist.init_process_group`; empty for other expressions."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        first = self.names.get(node.id, node.id)
        return ".".join([first, *reversed(parts)])

    def literal(self, node: ast.AST | None) -> object:
        """Return a number, a text, a truth or None that an expression is; `...` when it is something else."""
        if isinstance(node, ast.Name):
            node = self.constants.get(node.id)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            value = node.operand.value
            return -value if isinstance(value, int | float) and not isinstance(value, bool) else ...
        if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float | bool | None):
            return node.value
        return ...

    def texts(self, node: ast.AST | None) -> tuple[str, ...]:
        """Return the literals of a list or a tuple as texts."""
        if isinstance(node, ast.Name):
            node = self.constants.get(node.id)
        if not isinstance(node, ast.List | ast.Tuple | ast.Set):
            return ()
        values = [self.literal(part) for part in node.elts]
        return tuple(format_literal(value) for value in values if value is not ... and value is not None)


def parse_code(path: str, text: str) -> SourceCode | None:
    """Return the tree of a file; None when it is not Python of this version."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the project's own strings
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    nodes = tuple(ast.walk(tree))
    names: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names.update(_read_import(node))
    constants: dict[str, ast.expr] = {}
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target = statement.targets[0]
            if isinstance(target, ast.Name):
                constants[target.id] = statement.value
    calls = sorted(
        (node for node in nodes if isinstance(node, ast.Call)), key=lambda call: (call.lineno, call.col_offset)
    )
    return SourceCode(path, tree, names, constants, nodes, tuple(calls))


def _read_import(node: ast.Import | ast.ImportFrom) -> dict[str, str]:
    """Return the names that an import makes, with what they mean."""
    if isinstance(node, ast.Import):
        return {
            alias.asname or alias.name.partition(".")[0]: alias.name if alias.asname else alias.name.partition(".")[0]
            for alias in node.names
        }
    if node.module and not node.level:
        return {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return {}


def list_imports(code: SourceCode) -> tuple[tuple[str, int], ...]:
    """Return the modules that a file imports, each with its line; `.x` is one of its own package."""
    rows: dict[str, int] = {}
    for node in code.nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                rows.setdefault(alias.name, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            rows.setdefault(module, node.lineno)
            for alias in node.names:
                rows.setdefault(
                    f"{module}.{alias.name}" if not module.endswith(".") else module + alias.name, node.lineno
                )
    return tuple(sorted(rows.items(), key=lambda row: row[1]))


def find_keyword(call: ast.Call, name: str) -> ast.expr | None:
    """Return the value of a keyword of a call."""
    return next((keyword.value for keyword in call.keywords if keyword.arg == name), None)


def format_literal(value: object) -> str:
    """Return a literal as a command line has it."""
    return value if isinstance(value, str) else str(value)


HOLE = "\0"
"""Stands for a value in the text of `read_template`."""


def read_template(node: ast.AST | None) -> str:
    """Return the text of a string that a program fills in, with `HOLE` for each value; empty for other expressions.

    Example: `f"loss {x:.3f}"`, `"loss %.3f" % x` and `"loss {}".format(x)` are `loss \\0`.
    """
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = [part.value if isinstance(part, ast.Constant) else HOLE for part in node.values]
        return "".join(part if isinstance(part, str) else HOLE for part in parts)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return fill_percent(read_template(node.left))
    match node:
        case ast.Call(func=ast.Attribute(attr="format", value=template)):
            return _fill_braces(read_template(template))
    return ""


def fill_percent(text: str) -> str:
    """Return a text of `%` formatting with holes."""
    parts = text.replace("%%", "\1").split("%")
    filled = [parts[0]]
    for part in parts[1:]:
        index = next((index for index, char in enumerate(part) if char.isalpha()), -1)
        filled.append(HOLE + part[index + 1 :] if index >= 0 else HOLE)
    return "".join(filled).replace("\1", "%")


def _fill_braces(text: str) -> str:
    filled = []
    for index, part in enumerate(text.replace("{{", "\1").split("{")):
        filled.append(part if index == 0 else HOLE + part.partition("}")[2])
    return "".join(filled).replace("\1", "{")
