"""Warnings of `shell: sh`: words of `run` and `install` that sh reads in another way than bash."""

from __future__ import annotations

from riseml.spec.config.command_lines import read_lines, read_shell
from riseml.spec.config.types import Shell
from riseml.spec.scalars.bash_words import find_bash_words
from riseml.spec.yaml.document import ScalarNode, find_word_position
from riseml.spec.yaml.problems import KeyPath, Severity, make_problem
from riseml.spec.yaml.values import SourceFile

_TRAIN: KeyPath = ("train",)
_KEYS: tuple[KeyPath, ...] = (("run",), ("install",), ("image", "install"))
_MOST = 20  # warnings of one file


def warn_of_bash_words(file: SourceFile, roles: tuple[str, ...]) -> None:
    """Warn where sh was chosen and a line has a word of bash.

    Args:
        file: the file; warnings go there.
        roles: the names of the user's own roles.
    """
    common = read_shell(file, _TRAIN)
    shells = {_TRAIN: common} | {(path := (*_TRAIN, "roles", name)): read_shell(file, path, common) for name in roles}
    lines = [
        (path, line)
        for section, shell in shells.items()
        if shell is Shell.SH
        for key in _KEYS
        for path, line in read_lines(file, (*section, *key)).items()
    ]
    left = _MOST
    for path, line in lines:
        node = file.nodes[path]
        for word in find_bash_words(line)[:left]:
            position = node.position
            if isinstance(node, ScalarNode):
                position = find_word_position(node, line, word.offset)
            problem = f"sh reads `{word.text}` in another way than bash: it {word.meaning}"
            hint = f"{word.instead}, or choose `shell: bash`"
            file.add_problem(make_problem(position, path, problem, hint, Severity.WARNING))
            left -= 1
