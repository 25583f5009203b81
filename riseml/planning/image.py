"""The environment of an experiment: the project files that its install steps may read, its digest, its Dockerfile.

An install step sees only the project files that it names. So the digest is exact: a changed file that a step reads
makes another environment, and a changed file that no step reads does not. A step that runs a program of the project, or
names the project folder itself, may read any file and depends on all of them.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from riseml.model import Image

_TOKEN = re.compile(r"[^\s;&|<>()'\"`=,]+")
_PROGRAM = (".sh", ".bash", ".py", ".pl", ".mk")
_BUILD_FILES = frozenset({"Makefile", "makefile", "GNUmakefile", "setup.py"})
_INCLUDE = re.compile(r"^\s*(?:-r|--requirement|-c|--constraint|-e|--editable)[\s=]+(\S+)", re.MULTILINE)
CONTEXT_FOLDER = "project"
"""The folder of the project's files in the build context."""

_WHOLE = frozenset({".", "./", "/code", "/code/", "$PWD", "${PWD}"})
_MAKE = re.compile(r"(?:^|[;&|]\s*)make\b")


@dataclass(frozen=True, slots=True)
class Manifest:
    """The files of a project archive."""

    files: Mapping[str, str] = field(default_factory=dict)  # path -> SHA-256 (hex) of the content
    texts: Mapping[str, str] = field(default_factory=dict)  # path -> content, of small text files


def plan_image(base: str, install: tuple[str, ...], manifest: Manifest) -> Image:
    """Return the environment that the steps make on top of `base` in this project."""
    if not install:
        return Image(base)
    files = tuple(sorted({path for step in install for path in _find_files_read(step, manifest)}))
    recipe = {"base": base, "install": install, "files": [(path, manifest.files[path]) for path in files]}
    digest = hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()
    return Image(base, install, files, digest)


def make_dockerfile(image: Image) -> str:
    """Return the text of the Dockerfile: one RUN for each step, in exec form, so that no step can become Dockerfile
    syntax.
    """
    lines = [f"FROM {image.base}", "WORKDIR /code"]
    if image.files:
        lines.append(f"COPY {CONTEXT_FOLDER}/ /code/")
    lines += [f"RUN {json.dumps(['/bin/sh', '-ec', step])}" for step in image.install]
    return "\n".join(lines) + "\n"


def first_install_step(image: Image) -> int:
    """Return the number of the first install step among the steps of the Dockerfile, as the engine counts: from 1."""
    return 4 if image.files else 3


def _find_files_read(step: str, manifest: Manifest) -> Iterator[str]:
    tokens = [token.removeprefix("@") for token in _TOKEN.findall(step)]
    if _MAKE.search(step) or any(token in _WHOLE or _is_program(token, manifest) for token in tokens):
        yield from manifest.files
        return
    for token in tokens:
        yield from _find_files_named(posixpath.normpath(token.removeprefix("/code/")), manifest, frozenset())


def _is_program(token: str, manifest: Manifest) -> bool:
    path = posixpath.normpath(token.removeprefix("/code/"))
    return path in manifest.files and (
        token.startswith("./") or path.endswith(_PROGRAM) or posixpath.basename(path) in _BUILD_FILES
    )


def _find_files_named(path: str, manifest: Manifest, above: frozenset[str]) -> Iterator[str]:
    """Yield the files that a path names: the file itself and the files that it includes, all files of a folder, or all
    files that a pattern matches.
    """
    if path in manifest.files:
        yield path
        if path in above:
            return
        for include in _INCLUDE.findall(manifest.texts.get(path, "")):
            inner = posixpath.normpath(posixpath.join(posixpath.dirname(path), include))
            yield from _find_files_named(inner, manifest, above | {path})
    elif path == ".":
        yield from manifest.files
    elif any(char in path for char in "*?["):
        yield from fnmatch.filter(manifest.files, path)
    else:
        yield from (name for name in manifest.files if name.startswith(f"{path}/"))
