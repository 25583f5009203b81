"""The environment of an experiment: which project files its install steps may read, its digest, its Dockerfile.

An install step sees just the project files that it names, so that the digest can be trusted: a changed file that a step
reads makes another environment, a changed file that none reads does not. A step that runs a program of the project, or
names the project folder itself, may read anything and so depends on everything.
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
"""Where in the build context the project's files are."""

_WHOLE = frozenset({".", "./", "/code", "/code/", "$PWD", "${PWD}"})
_MAKE = re.compile(r"(?:^|[;&|]\s*)make\b")


@dataclass(frozen=True, slots=True)
class Manifest:
    """The files of a synced project: path -> SHA-256 of its content; `texts` holds the small text files' content."""

    files: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)


def plan_image(base: str, install: tuple[str, ...], manifest: Manifest) -> Image:
    """The environment that `base` and the steps make in this project."""
    if not install:
        return Image(base)
    files = tuple(sorted({path for step in install for path in _reads(step, manifest)}))
    recipe = {"base": base, "install": install, "files": [(path, manifest.files[path]) for path in files]}
    digest = hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()
    return Image(base, install, files, digest)


def make_dockerfile(image: Image) -> str:
    """The text of the Dockerfile: one RUN a step, in exec form, so that nothing in a step can become Dockerfile
    syntax.
    """
    lines = [f"FROM {image.base}", "WORKDIR /code"]
    if image.files:
        lines.append(f"COPY {CONTEXT_FOLDER}/ /code/")
    lines += [f"RUN {json.dumps(['/bin/sh', '-ec', step])}" for step in image.install]
    return "\n".join(lines) + "\n"


def first_install_step(image: Image) -> int:
    """The number of the first install step among the Dockerfile's steps, counted from 1 as the engine does."""
    return 4 if image.files else 3


def _reads(step: str, manifest: Manifest) -> Iterator[str]:
    tokens = [token.removeprefix("@") for token in _TOKEN.findall(step)]
    if _MAKE.search(step) or any(token in _WHOLE or _runs(token, manifest) for token in tokens):
        yield from manifest.files
        return
    for token in tokens:
        yield from _named(posixpath.normpath(token.removeprefix("/code/")), manifest, frozenset())


def _runs(token: str, manifest: Manifest) -> bool:
    path = posixpath.normpath(token.removeprefix("/code/"))
    return path in manifest.files and (
        token.startswith("./") or path.endswith(_PROGRAM) or posixpath.basename(path) in _BUILD_FILES
    )


def _named(path: str, manifest: Manifest, above: frozenset[str]) -> Iterator[str]:
    """The files that a path names: itself and what it includes, all below it, or all that its pattern matches."""
    if path in manifest.files:
        yield path
        if path in above:
            return
        for include in _INCLUDE.findall(manifest.texts.get(path, "")):
            inner = posixpath.normpath(posixpath.join(posixpath.dirname(path), include))
            yield from _named(inner, manifest, above | {path})
    elif path == ".":
        yield from manifest.files
    elif any(char in path for char in "*?["):
        yield from fnmatch.filter(manifest.files, path)
    else:
        yield from (name for name in manifest.files if name.startswith(f"{path}/"))
