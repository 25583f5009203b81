"""What goes into a virtual environment: packages that replace an image, refused commands, the installers' variables."""

from __future__ import annotations

import configparser
import os
import platform
import re
from collections.abc import Mapping
from pathlib import Path

from riseml.base.errors import EngineError
from riseml.spec.scalars.framework_images import list_image_packages

_ROOT_COMMANDS = frozenset(
    {"apt", "apt-get", "aptitude", "dpkg", "yum", "dnf", "microdnf", "apk", "zypper", "pacman", "sudo"}
)
_COMMAND_PREFIXES = frozenset({"env", "exec", "time", "nice", "then", "else", "do", "!", "{"})
_FOREIGN_VARIABLE = re.compile(
    r"RISEML_|VIRTUAL_ENV$|PYTHON(PATH|HOME)$|CONDA_|PIP_(USER|TARGET|PREFIX)$|UV_(PYTHON|PROJECT)"
)
_INSTALLER_VARIABLES = {
    "NO_COLOR": "1",
    "UV_NO_PROGRESS": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_NO_INPUT": "1",
    "PIP_PROGRESS_BAR": "off",
    "PIP_ROOT_USER_ACTION": "ignore",
    "PYTHONUNBUFFERED": "1",
}

DOCKER_HINT = "the docker executor can: start a Docker Engine, or name one in DOCKER_HOST"


def choose_packages(base: str, *, gpus: bool) -> tuple[tuple[str, ...], str]:
    """Return the packages that replace an image, and a remark when there are none.

    Example:
        >>> choose_packages("tensorflow/tensorflow:2.21.0", gpus=False)
        (('tensorflow-cpu==2.21.0', 'tensorboard'), '')
    """
    packages = list_image_packages(base, gpus=gpus, machine=platform.machine())
    if packages:
        return packages, ""
    return (), f"The image {base} is not used: jobs run without Docker; what they need goes into train.install"


def refuse_root_commands(install: tuple[str, ...]) -> None:
    """Refuse install steps that would change the machine, before the first of them runs.

    Raises:
        EngineError: a step calls a package manager of the machine, or sudo.
    """
    for number, line in enumerate(install, 1):
        for command in re.split(r"[;&|(\n]+", line):
            words = [
                word for word in command.split() if not re.match(r"\w+=|-", word) and word not in _COMMAND_PREFIXES
            ]
            if words and os.path.basename(words[0]) in _ROOT_COMMANDS:
                raise EngineError(
                    f"install step {number} installs into the whole machine, which jobs without Docker may not: {line}",
                    DOCKER_HINT,
                    permanent=True,
                )


def make_installer_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables for installers: those of the server without the ones that would mislead installers, plain
    output, pip's package index and folders of wheels for uv, and `variables` last.
    """
    inherited = {name: value for name, value in os.environ.items() if not _FOREIGN_VARIABLE.match(name)}
    named = {"UV_DEFAULT_INDEX", "UV_INDEX_URL"} & inherited.keys()
    index = None if named else _read_pip_setting("PIP_INDEX_URL")
    links = None if "UV_FIND_LINKS" in inherited else _read_pip_setting("PIP_FIND_LINKS")
    settings = {"UV_DEFAULT_INDEX": index, "UV_FIND_LINKS": ",".join((links or "").split())}
    return {
        **inherited,
        **_INSTALLER_VARIABLES,
        **{name: value for name, value in settings.items() if value},
        **variables,
    }


def _read_pip_setting(variable: str) -> str | None:
    """Return one of pip's own settings, which uv ignores. Often only they name a company's mirror or its wheels.

    pip reads each setting from a variable, and from files in which its name has no `PIP_`, small letters and hyphens.
    """
    if value := os.environ.get(variable):
        return value
    name = variable.removeprefix("PIP_").lower().replace("_", "-")
    parser = configparser.RawConfigParser()
    home = Path.home()
    places = ("/etc/pip.conf", home / ".pip" / "pip.conf", home / ".config" / "pip" / "pip.conf")
    try:
        parser.read([*places, os.environ.get("PIP_CONFIG_FILE", "")])
    except (configparser.Error, UnicodeDecodeError):
        return None
    return parser.get("global", name, fallback=None)
