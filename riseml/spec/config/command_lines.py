"""Command lines of a file: a string or a list of strings, with the line breaks that their author meant."""

from __future__ import annotations

from dataclasses import replace

from riseml.spec.config.types import Shell
from riseml.spec.yaml.document import MappingNode, Node, ScalarNode, SequenceNode
from riseml.spec.yaml.problems import KeyPath
from riseml.spec.yaml.values import SourceFile

_COMMANDS = ("run", "install")
_FREE = ("env", "parameters")  # their keys are names of the user, and their texts are no commands


def join_continued_lines(node: Node, *, command: bool = False) -> Node:
    """Return a tree without the backslashes at the line ends of commands. Once the tree is written again, a backslash
    at a line end that YAML joined looks like one that the shell should read.

    Args:
        node: the tree, or a part of it.
        command: whether its texts are commands.
    """
    match node:
        case ScalarNode():
            return replace(node, text=_remove_backslashes(node, node.text), continued=()) if command else node
        case SequenceNode(items=items):
            return replace(node, items=tuple(join_continued_lines(item, command=command) for item in items))
        case MappingNode(entries=entries):
            return replace(
                node,
                entries=tuple(
                    entry
                    if entry.key.text in _FREE
                    else replace(entry, value=join_continued_lines(entry.value, command=entry.key.text in _COMMANDS))
                    for entry in entries
                ),
            )


def read_lines(file: SourceFile, path: KeyPath) -> dict[KeyPath, str]:
    """Return the strings of a string or a list of strings, by path; an empty one is refused."""
    commands: dict[KeyPath, str] = {}
    for place, text in file.items_at(path).items():
        if text.strip():
            commands[place] = _unfold_command(file, place, text)
        else:
            file.refuse(place, "is an empty string")
    return commands


def read_shell(file: SourceFile, section: KeyPath, default: Shell = Shell.AUTO) -> Shell:
    """Return the shell of a section's command lines.

    Args:
        file: the file.
        section: `train`, or the path of a role.
        default: for a section without the key.
    """
    return file.read((*section, "shell"), Shell) or default


def _unfold_command(file: SourceFile, path: KeyPath, text: str) -> str:
    """Return a command with the line breaks that its author meant.

    In a `>` text YAML keeps the line breaks before lines with more indentation. Options of a command are often indented
    this way; no command begins with a dash, so such a line joins the line above. A backslash at the end of a line is
    removed: once YAML has joined the lines, the shell would read it as an escaped space.
    """
    node = file.nodes[path]
    if isinstance(node, ScalarNode):
        text = _remove_backslashes(node, text)
        if node.style == ">":
            text = _join_options(text)
    return text.rstrip("\n")


def _remove_backslashes(node: ScalarNode, text: str) -> str:
    for index in reversed(node.continued):
        text = text[:index] + text[index + 1 :]
    return text


def _join_options(text: str) -> str:
    lines: list[str] = []
    for line in text.split("\n"):
        inner = line.strip(" \t")
        if inner.startswith("-") and lines and lines[-1].strip():
            lines[-1] = f"{lines[-1].rstrip()} {inner}"
        else:
            lines.append(line)
    return "\n".join(lines)
