"""The environment of an experiment: the project files that its install steps may read, its digest, the
commands of its steps.

An install step sees only the project files that it names, and those that requirement files and links lead to. So the
digest is exact: a changed file that a step reads makes another environment, and a changed file that no step reads does
not. A step that runs a program of the project, names the project folder itself or installs the project, as `poetry
install` does, may read any file and depends on all of them.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import field

from riseml.base.errors import UsageError
from riseml.base.records import dataclass
from riseml.job_programs.held_packages import IMAGE_FILE, count_framework_steps, hold_packages
from riseml.job_programs.script_shell import make_shell_command
from riseml.model import Image
from riseml.planning.files_read import list_files_read
from riseml.spec.config.types import Shell
from riseml.spec.scalars.bash_words import may_differ_in_bash
from riseml.spec.scalars.texts import is_valid_text, make_valid

PACKAGES_FILE = "/.riseml-packages.txt"
"""The file of an environment that says which packages its steps left in it."""

MOST_PACKAGES = 10_000  # packages of an environment; more are not listed

_PIP = (
    ("pip", "install"),
    ("pip3", "install"),
    ("python", "-m", "pip", "install"),
    ("python3", "-m", "pip", "install"),
)
_PIP_OPTIONS = frozenset({"-q", "--quiet", "-U", "--upgrade", "--no-cache-dir", "--no-deps", "--pre"})
_REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9._,-]+\])?((==|~=)[A-Za-z0-9.+_-]+)?", re.ASCII)

_LIST_PACKAGES = (
    f"rm -f {IMAGE_FILE}; {{ {{ pip freeze || python3 -m pip freeze; }} > {PACKAGES_FILE}; }} 2>/dev/null || :"
)


@dataclass(frozen=True, slots=True)
class Manifest:
    """The files of a project archive."""

    files: Mapping[str, str] = field(default_factory=dict)  # path -> SHA-256 (hex) of the content
    texts: Mapping[str, str] = field(default_factory=dict)  # path -> content, of small text files
    holder: str = ""  # the user or the team project that they belong to, on a team's server; empty: another server


def plan_image(base: str, install: tuple[str, ...], manifest: Manifest, shell: Shell = Shell.AUTO) -> Image:
    """Return the environment that the steps, read by `shell`, make on top of `base` in this project.

    The shell belongs to the digest only where a step may have another meaning in bash than in sh: environments of other
    steps stay what they are when the shell changes. An environment of a team's server is shared by all users when they
    can neither learn from it nor poison it for others (`is_common`); otherwise it is its holder's alone.

    Raises:
        UsageError: the files that the steps read include too many others, or too much text, or a name is not UTF-8.
    """
    if not install:
        return Image(base)
    files = list_files_read(install, manifest.files, manifest.texts)
    odd = next((path for path in files if not is_valid_text(path)), None)
    if odd is not None:  # a plan with it could not be stored
        raise UsageError(
            f"the install steps may read a file whose name is not UTF-8: {make_valid(odd)}",
            "rename it, or name it in .risemlignore",
        )
    recipe: dict[str, object] = {
        "base": base,
        "install": install,
        "files": [(path, manifest.files[path]) for path in files],
    }
    if shell is not Shell.SH and any(map(may_differ_in_bash, install)):
        recipe["shell"] = shell.value
    holder = "" if not files and is_common(install) else manifest.holder
    if holder:
        recipe["holder"] = holder
    digest = hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()
    return Image(base, install, files, digest, shell=shell, holder=holder)


def is_common(install: tuple[str, ...]) -> bool:
    """Return True when the steps install packages by name from the index of the base image, and do nothing else.

    Any other step may fetch what one user can change for a while, and its image would keep that for the next user.
    """
    return all(map(_installs_by_name, install))


def _installs_by_name(step: str) -> bool:
    try:
        words = [] if "\n" in step or "\r" in step else shlex.split(step)
    except ValueError:
        return False
    program = next((form for form in _PIP if tuple(words[: len(form)]) == form), None)
    if program is None:
        return False
    return all(word in _PIP_OPTIONS or _REQUIREMENT.fullmatch(word) for word in words[len(program) :])


def make_step_command(step: str, shell: Shell) -> tuple[str, ...]:
    """Return the program and its arguments that run one install step, on every executor.

    Where bash is missing, sh runs the steps of `shell: bash`, too: one of them may install it.
    """
    return make_shell_command(Shell.AUTO if shell is Shell.BASH else shell, step)


def make_step_commands(image: Image, constraints: str) -> list[tuple[str, ...]]:
    """Return the commands of the install steps of an environment. They hold what its image or the version of its
    framework brought.

    Args:
        image: the environment.
        held: path of a file below no project; the first step writes it.
    """
    commands = [make_step_command(step, image.shell) for step in image.install]
    own = count_framework_steps(image.install)
    return [*commands[:own], *(hold_packages(command, constraints) for command in commands[own:])]


def make_list_command() -> tuple[str, ...]:
    """Return the program that lists the packages after the install steps of an image; without pip the list is empty."""
    return make_step_command(_LIST_PACKAGES, Shell.SH)


def parse_packages(text: str) -> tuple[str, ...] | None:
    """Return the lines of `pip freeze`; None when it printed nothing."""
    return tuple(line for line in text.splitlines() if line.strip())[:MOST_PACKAGES] or None
