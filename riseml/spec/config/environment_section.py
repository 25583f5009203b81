"""An environment of the file: `image` and `install`, in `train` and in each role of the user's own."""

from __future__ import annotations

from riseml.spec.config.command_lines import read_lines
from riseml.spec.yaml.problems import KeyPath
from riseml.spec.yaml.values import SourceFile


def read_environment(file: SourceFile, section: KeyPath) -> tuple[str | None, tuple[str, ...]]:
    """Return the image and the install steps of a section; the steps may be in `image`, too.

    Args:
        file: the file.
        section: `train`, or the path of a role.
    """
    path = (*section, "image")
    image = file.value_at(path)
    inner = (*path, "install")
    outer = (*section, "install")
    if not isinstance(image, dict):
        return image, tuple(read_lines(file, outer).values())
    if file.value_at(inner) is not None and file.value_at(outer) is not None:
        line = file.find_key_position(inner).line
        file.refuse_key(
            outer,
            f"install steps are given twice: here and in {'.'.join(map(str, inner))} on line {line}",
            "put all of them in one place",
        )
    steps = read_lines(file, inner) or read_lines(file, outer)
    return file.value_at((*path, "name")), tuple(steps.values())
