"""What a Dockerfile says: its base image, the steps that install, its variables and its command."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import replace

from riseml.project_reading.findings import CodePlace, ImageFile

_MOST_LINES = 2_000
_INSTALLERS = re.compile(r"\b(pip3?|uv|poetry|pipenv|conda|micromamba|mamba|apt-get|apt|apk|yum|dnf)\b")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def read_image_file(texts: Mapping[str, str], file: str = "Dockerfile") -> ImageFile | None:
    """Return what the last stage of a Dockerfile says; None when there is none that names an image."""
    stages: dict[str, str] = {}  # name of a stage -> its image
    settings: dict[str, str] = {}  # of ARG
    image: ImageFile | None = None
    for number, instruction, text in _list_instructions(texts.get(file, "")):
        match instruction:
            case "ARG":
                name, _, value = text.partition("=")
                settings.setdefault(name.strip(), value.strip().strip("\"'"))
            case "FROM":
                image = _read_from(_fill(text, settings), stages, CodePlace(file, number))
            case "RUN" if image is not None:
                image = _add_step(image, _fill_known(text, settings))
            case "ENV" if image is not None:
                image = _add_variables(image, text)
            case "CMD" | "ENTRYPOINT" if image is not None:
                image = _replace_command(image, text)
            case _:
                continue
    return image if image is not None and image.image not in ("", "scratch") and "$" not in image.image else None


def _list_instructions(text: str) -> list[tuple[int, str, str]]:
    """Return the instructions with their lines; lines that end on a backslash are joined."""
    rows: list[tuple[int, str, str]] = []
    begun: list[str] = []
    first = 1
    for number, line in enumerate(text.splitlines()[:_MOST_LINES], 1):
        if line.lstrip().startswith("#") or (not begun and not line.strip()):
            continue
        first = first if begun else number
        begun.append(line.rstrip().removesuffix("\\").strip())
        if not line.rstrip().endswith("\\"):
            word, _, tail = " ".join(begun).strip().partition(" ")
            rows.append((first, word.upper(), tail.strip()))
            begun = []
    return rows


def _fill(text: str, settings: Mapping[str, str]) -> str:
    return re.sub(r"\$\{?(\w+)\}?", lambda match: settings.get(match[1]) or match[0], text)


def _fill_known(text: str, settings: Mapping[str, str]) -> str:
    return re.sub(r"\$\{(\w+)\}", lambda match: settings.get(match[1]) or match[0], text)


def _read_from(text: str, stages: dict[str, str], place: CodePlace) -> ImageFile:
    words = [word for word in text.split() if not word.startswith("--")]
    name = words[0] if words else ""
    name = stages.get(name.lower(), name)
    if len(words) == 3 and words[1].lower() == "as":
        stages[words[2].lower()] = name
    return ImageFile(name, place)


def _add_step(image: ImageFile, text: str) -> ImageFile:
    words = text.split()
    while words and words[0].startswith("--"):
        words.pop(0)
    step = " ".join(words)
    if not _INSTALLERS.search(step) or step.startswith("["):
        remark = f"RUN {step[:60]} is left out: it installs nothing"
        return replace(image, remarks=(*image.remarks, remark))
    return replace(image, steps=(*image.steps, step))


def _add_variables(image: ImageFile, text: str) -> ImageFile:
    try:
        words = shlex.split(text)
    except ValueError:
        return image
    pairs = [(name, value) for name, equals, value in (word.partition("=") for word in words) if equals]
    if not pairs and len(words) >= 2:
        pairs = [(words[0], " ".join(words[1:]))]
    usable = [
        (name, value) for name, value in pairs if _NAME.fullmatch(name) and "$" not in value and "PATH" not in name
    ]
    return replace(image, variables=tuple(dict((*image.variables, *usable)).items()))


def _replace_command(image: ImageFile, text: str) -> ImageFile:
    try:
        words = json.loads(text) if text.startswith("[") else None
    except (ValueError, RecursionError):
        return image
    if isinstance(words, list) and all(isinstance(word, str) for word in words):
        text = shlex.join(words)
    return replace(image, command=f"{image.command} {text}".strip() if image.command else text)
