"""What a project asks for: requirements.txt, pyproject.toml, poetry, uv, Pipfile, setup.py, setup.cfg, and conda."""

from __future__ import annotations

import ast
import configparser
import re
import shlex
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from riseml.project_reading.findings import CodePlace, Packages, Requirement
from riseml.project_reading.syntax import find_keyword, parse_code
from riseml.spec.yaml.document import MappingNode, Node, ScalarNode, SequenceNode, parse_document

MICROMAMBA = "mambaorg/micromamba:2.0.5"
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*(?:@[^;#]*)?([^;#\s][^;#]*)?")
_MOST = 500  # packages of one file
_FILES = ("requirements.txt", "requirements/train.txt", "requirements/base.txt", "requirements/requirements.txt")
_CONDA = ("environment.yml", "environment.yaml", "conda.yml", "conda.yaml")
_PLAIN_CONDA = frozenset({"python", "pip", "setuptools", "wheel"})
_CONDA_NAMES = {"pytorch": "torch", "pytorch-gpu": "torch", "tensorflow-gpu": "tensorflow"}
_REBUILT = "every change of a file makes the environment again; a requirements.txt does not"


def read_packages(texts: Mapping[str, str]) -> Packages:
    """Return what a project asks for, and how it is installed; the file with exact versions counts first."""
    readers = (
        _read_uv,
        _read_poetry,
        _read_pipfile,
        _read_requirements_file,
        _read_conda,
        _read_project_table,
        _read_setup,
    )
    packages = next((packages for reader in readers if (packages := reader(texts)) is not None), Packages())
    python = packages.python or _read_python(texts)
    return replace(packages, python=python)


def _read_python(texts: Mapping[str, str]) -> str:
    """Return the version of Python that a project names."""
    written = texts.get(".python-version", "").strip()
    project = _read_toml(texts, "pyproject.toml").get("project")
    if not written and isinstance(project, dict):
        written = str(project.get("requires-python", ""))
    match = re.search(r"3\.(\d{1,2})", written)
    if match is None:
        return ""
    minor = int(match[1]) - 1 if re.match(r"\s*<\s*3", written) else int(match[1])
    exact = re.match(r"\s*(?:==|~=)?\s*3\.", written) is not None
    return f"3.{minor}" if exact or minor > 11 or written.lstrip().startswith("<") else ""


def name_package(name: str) -> str:
    """Return the name of a package as PyPI compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_requirements(lines: Iterable[tuple[int, str]], file: str) -> tuple[Requirement, ...]:
    """Return the packages of numbered lines of a requirements.txt."""
    requirements: list[Requirement] = []
    for number, line in lines:
        if not line.strip() or line.lstrip().startswith(("#", "-", ".", "/", "git+", "http")):
            continue
        match = _REQUIREMENT.match(line)
        if match is not None and len(requirements) < _MOST:
            versions = (match[2] or "").strip().strip("()").replace(" ", "")
            versions = versions if versions[:1] in ("=", "<", ">", "~", "!") else ""
            requirements.append(Requirement(name_package(match[1]), versions, CodePlace(file, number)))
    return tuple(requirements)


def _read_toml(texts: Mapping[str, str], name: str) -> dict[str, Any]:
    try:
        return tomllib.loads(texts.get(name, ""))
    except (tomllib.TOMLDecodeError, RecursionError, ValueError):
        return {}


def _table(value: Any, *names: str) -> dict[str, Any]:
    """Return a table inside of others; empty when there is none."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _find_line(text: str, word: str) -> int:
    """Return the first line that has a word in it."""
    index = text.lower().find(word.lower())
    return text.count("\n", 0, index) + 1 if index >= 0 else 1


def _list_project(texts: Mapping[str, str]) -> tuple[Requirement, ...]:
    """Return the dependencies of pyproject.toml, of the standard's table or of poetry's."""
    text = texts.get("pyproject.toml", "")
    document = _read_toml(texts, "pyproject.toml")
    listed = _table(document, "project").get("dependencies")
    rows = [line for line in listed if isinstance(line, str)] if isinstance(listed, list) else []
    lines = [(_find_line(text, re.split(r"[^\w.-]", row, maxsplit=1)[0]), row) for row in rows]
    for name, value in _table(document, "tool", "poetry", "dependencies").items():
        if name.lower() != "python":
            lines.append((_find_line(text, name), name + _read_poetry_versions(value)))
    return read_requirements(lines, "pyproject.toml")


def _read_poetry_versions(value: Any) -> str:
    """Return `>=1.2,<2` for poetry's `^1.2`."""
    text = value.get("version", "") if isinstance(value, dict) else value
    if not isinstance(text, str) or text.strip() in ("", "*"):
        return ""
    match = re.fullmatch(r"\s*([\^~]?)\s*(\d+)((?:\.\d+)*)\s*", text)
    if match is None:
        return text if text.strip()[:1] in "<>=!~" else ""
    if not match[1]:
        return f"=={match[2]}{match[3]}"
    return f">={match[2]}{match[3]}" + (f",<{int(match[2]) + 1}" if match[1] == "^" and match[2] != "0" else "")


def _read_uv(texts: Mapping[str, str]) -> Packages | None:
    if "uv.lock" not in texts or "pyproject.toml" not in texts:
        return None
    steps = (
        "pip install uv",
        "uv export --frozen --no-dev --no-hashes --no-emit-project | pip install -r /dev/stdin"
        "  # of pyproject.toml and uv.lock",
    )
    return Packages(_list_project(texts), steps, CodePlace("uv.lock"))


def _read_poetry(texts: Mapping[str, str]) -> Packages | None:
    poetry = _table(_read_toml(texts, "pyproject.toml"), "tool", "poetry")
    if "poetry.lock" not in texts and not poetry:
        return None
    if "poetry.lock" in texts:
        export = "poetry export --without-hashes | pip install -r /dev/stdin"
        steps = ("pip install poetry poetry-plugin-export", export)
    else:
        steps = ("pip install poetry", "POETRY_VIRTUALENVS_CREATE=false poetry install --only main --no-root")
    file = "poetry.lock" if "poetry.lock" in texts else "pyproject.toml"
    match = re.search(r"3\.\d+", str(_table(poetry, "dependencies").get("python", "")))
    python = match[0] if match is not None and int(match[0][2:]) > 11 else ""
    return Packages(_list_project(texts), steps, CodePlace(file), python, remarks=(f"poetry: {_REBUILT}",))


def _read_pipfile(texts: Mapping[str, str]) -> Packages | None:
    if "Pipfile" not in texts:
        return None
    document = _read_toml(texts, "Pipfile")
    rows = []
    for name, value in _table(document, "packages").items():
        written = value.get("version", "") if isinstance(value, dict) else value
        rows.append((_find_line(texts["Pipfile"], name), f"{name}{written if written != '*' else ''}"))
    is_locked = "Pipfile.lock" in texts
    install = "pipenv requirements | pip install -r /dev/stdin" if is_locked else "pipenv install --system"
    python = str(_table(document, "requires").get("python_version", ""))
    place = CodePlace("Pipfile.lock" if is_locked else "Pipfile")
    requirements = read_requirements(rows, "Pipfile")
    steps = ("pip install pipenv", install)
    return Packages(requirements, steps, place, _clean_python(python), remarks=(f"pipenv: {_REBUILT}",))


def _clean_python(text: str) -> str:
    match = re.match(r"3\.\d{1,2}", text)
    return match[0] if match else ""


def _read_requirements_file(texts: Mapping[str, str]) -> Packages | None:
    file = next((name for name in _FILES if texts.get(name, "").strip()), None)
    if file is None:
        return None
    requirements = read_requirements(enumerate(texts[file].splitlines(), 1), file)
    return Packages(requirements, (f"pip install -r {file}",), CodePlace(file))


def _read_conda(texts: Mapping[str, str]) -> Packages | None:
    file = next((name for name in _CONDA if name in texts), None)
    root = parse_document(texts[file], file).root if file else None
    rows = root.get("dependencies") if isinstance(root, MappingNode) else None
    if file is None or not isinstance(rows, SequenceNode):
        return None
    conda = [(item.position.line, item.text) for item in rows.items if isinstance(item, ScalarNode)]
    pip = [line for item in rows.items if isinstance(item, MappingNode) for line in _list_texts(item.get("pip"))]
    listed = read_requirements([(line, _read_conda_versions(text)) for line, text in conda], file)
    named = tuple(replace(part, name=_CONDA_NAMES.get(part.name, part.name)) for part in listed)
    requirements = (*named, *read_requirements(pip, file))
    python = next((_clean_python(part.versions.lstrip("=")) for part in listed if part.name == "python"), "")
    if all(part.name in _PLAIN_CONDA for part in listed):  # pip brings all of it
        steps = ("pip install " + " ".join(shlex.quote(text) for _, text in pip),) if pip else ()
        return Packages(requirements, steps, CodePlace(file), python)
    remark = (
        f"{file} is conda's: the image {MICROMAMBA} installs it; without Docker there is no conda, so that jobs"
        " there need a requirements.txt instead"
    )
    steps = (f"micromamba install -y -n base -f {file} && micromamba clean -y -a",)
    return Packages(requirements, steps, CodePlace(file), python, MICROMAMBA, "micromamba run -n base ", (remark,))


def _read_conda_versions(text: str) -> str:
    """Return `torch==2.1` for conda's `torch=2.1=cuda` and `conda-forge::torch=2.1`."""
    name, equals, versions = text.rpartition("::")[2].partition("=")
    if not equals or name[-1:] in "<>!~":
        return text.rpartition("::")[2]
    return f"{name}=={versions.lstrip('=').partition('=')[0]}"


def _list_texts(node: Node | None) -> list[tuple[int, str]]:
    items = node.items if isinstance(node, SequenceNode) else ()
    return [(item.position.line, item.text) for item in items if isinstance(item, ScalarNode)]


def _read_project_table(texts: Mapping[str, str]) -> Packages | None:
    document = _read_toml(texts, "pyproject.toml")
    if not _table(document, "project"):
        return None
    requirements = _list_project(texts)
    if _table(document, "build-system"):
        return Packages(
            requirements, ("pip install .",), CodePlace("pyproject.toml"), remarks=(f"pip install .: {_REBUILT}",)
        )
    words = " ".join(shlex.quote(part.name + part.versions) for part in requirements)
    return Packages(requirements, (f"pip install {words}",) if words else (), CodePlace("pyproject.toml"))


def _read_setup(texts: Mapping[str, str]) -> Packages | None:
    if "setup.py" not in texts and "setup.cfg" not in texts:
        return None
    rows: tuple[Requirement, ...] = ()
    code = parse_code("setup.py", texts.get("setup.py", ""))
    for call in code.calls if code is not None else ():
        node = find_keyword(call, "install_requires")
        if code is not None and isinstance(node, ast.List | ast.Tuple | ast.Name):
            rows += read_requirements([(call.lineno, text) for text in code.texts(node)], "setup.py")
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(texts.get("setup.cfg", ""))
        listed = parser.get("options", "install_requires", fallback="")
    except configparser.Error:
        listed = ""
    rows += read_requirements([(1, line) for line in listed.splitlines()], "setup.cfg")
    is_package = "setup.py" in texts or parser.has_section("options")
    if not is_package:
        return None
    place = CodePlace("setup.py" if "setup.py" in texts else "setup.cfg")
    return Packages(rows, ("pip install .",), place, remarks=(f"pip install .: {_REBUILT}",))
