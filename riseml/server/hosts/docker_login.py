"""The credentials that the user of the server has in Docker's own configuration, for a single user. Nothing is written.

`config.json` has them itself (`auths`), or names a program that has them (`credHelpers` for some registries,
`credsStore` for all): `docker-credential-NAME get` reads the registry from its standard input and prints JSON.
"""

from __future__ import annotations

import base64
import json
import logging
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from riseml.base.secrets import HUB, TOKEN_LOGIN, RegistryCredential

_HUB_KEYS = ("https://index.docker.io/v1/", "index.docker.io", "docker.io", "registry-1.docker.io")
_HELPER = re.compile("[A-Za-z0-9_.-]{1,100}")
_MOST_WAIT = 10.0  # seconds for a helper; one that asks its user for a password waits for ever
_LARGEST = 1 << 20  # bytes of the file
_MOST_SHOWN = 200  # characters of what a helper says

log = logging.getLogger(__name__)


def find_docker_login(
    environ: Mapping[str, str], host: str, most_wait: float = _MOST_WAIT
) -> RegistryCredential | None:
    """Return the credential for a registry; None: the configuration has none, or its program does not give it.

    Args:
        environ: of the server, with HOME and DOCKER_CONFIG.
        host: of the registry.
        most_wait: seconds for a credential helper.
    """
    config = _read_config(environ)
    keys = _HUB_KEYS if host == HUB else (host, f"https://{host}", f"https://{host}/", f"http://{host}")
    helper = _find_text(config.get("credHelpers"), keys) or str(config.get("credsStore") or "")
    if helper:
        credential = _ask_helper(helper, keys[0], environ, most_wait)
        if credential is not None:
            return credential
    auths = config.get("auths")
    entries = [auths[key] for key in keys if key in auths] if isinstance(auths, dict) else []
    return next(filter(None, map(_read_entry, entries)), None)


def _read_config(environ: Mapping[str, str]) -> dict[str, object]:
    folder = environ.get("DOCKER_CONFIG") or (f"{environ['HOME']}/.docker" if environ.get("HOME") else "")
    path = Path(folder) / "config.json"
    try:
        with path.open("rb") as file:
            content = json.loads(file.read(_LARGEST))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        log.warning("%s is not used: %s", path, error)
        return {}
    return content if folder and isinstance(content, dict) else {}


def _find_text(section: object, keys: tuple[str, ...]) -> str:
    if not isinstance(section, dict):
        return ""
    return next((str(section[key]) for key in keys if section.get(key)), "")


def _read_entry(entry: object) -> RegistryCredential | None:
    if not isinstance(entry, dict):
        return None
    try:
        login, colon, password = base64.b64decode(str(entry.get("auth") or ""), validate=True).decode().partition(":")
    except ValueError:
        return None
    if colon and login and password:
        return RegistryCredential(login, password)
    token = entry.get("identitytoken")
    return RegistryCredential(TOKEN_LOGIN, str(token)) if token else None


def _ask_helper(helper: str, key: str, environ: Mapping[str, str], most_wait: float) -> RegistryCredential | None:
    if _HELPER.fullmatch(helper) is None:
        log.warning("the credential helper %r is not the name of a program", helper)
        return None
    try:
        answer = subprocess.run(
            [f"docker-credential-{helper}", "get"],
            input=key.encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=dict(environ),
            timeout=most_wait,
            check=False,
        )
        content = json.loads(answer.stdout) if answer.returncode == 0 else {}
    except subprocess.TimeoutExpired:
        log.warning("docker-credential-%s has not answered within %.0f s, and is not used", helper, most_wait)
        return None
    except (OSError, ValueError) as error:
        log.warning("docker-credential-%s is not used: %s", helper, str(error)[:_MOST_SHOWN])
        return None
    login = str(content.get("Username") or "")
    password = str(content.get("Secret") or "")
    return RegistryCredential(login, password) if login and password else None
