"""Check who owns the parts of an output folder on a host whose files the server does not see, and who can reach them.

The engine answers for a path of a container whether it runs or not: `HEAD` gives the mode, and the first header of the
tar that `GET` sends gives the owner.
"""

from __future__ import annotations

import io
import re
import stat
import tarfile
from typing import Any

import docker
import requests
from docker.errors import APIError
from docker.utils import decode_json_header

from riseml.base.errors import EngineError
from riseml.base.folders import describe_replaceable, is_replaceable
from riseml.executors.base import Output
from riseml.executors.capabilities import Finding, Outcome
from riseml.executors.transports.engine_client import raise_for_refusal
from riseml.model import Mount

_MISSING = 404
_GO_STICKY = 1 << 20  # in a mode as Go writes it
_HINT = "look at it on that host and remove it, or choose another folder: RISEML_OUTPUT, or `storage` in pool.yml"


def check_output_parts(api: docker.APIClient, container: str, output: Output) -> None:
    """Check the parts of an output folder that exist on the host. Most hosts answer with one call.

    Where every user may write in the root, another user may have made a part of it. Elsewhere the engine itself refuses
    a link in place of a folder (`noOverwriteDirNonDir` of `PUT`).

    Args:
        api: the engine.
        container: a container that mounts the output root.
        output: the folder.

    Raises:
        EngineError: another user made a part, or could replace it; or a part is a link (permanent).
    """
    root = output.root
    mode = _read_mode(api, container, root.target)
    if lets_others_replace(root, mode):
        raise _make_refusal(describe_replaceable(root.source, mode))
    if not mode & stat.S_IWOTH:
        return
    with tarfile.open(fileobj=io.BytesIO(output.tar)) as tar:
        folders = [member for member in tar if member.isdir()]
    for folder in folders:
        entry = _read_head(api, container, f"{root.target}/{folder.name}")
        if entry is None:
            return
        at = f"{root.source}/{folder.name}"
        if not entry.isdir():
            raise _make_refusal(f"{at} is a link or a file, of uid {entry.uid}")
        if entry.uid not in (0, folder.uid):
            raise _make_refusal(f"{at} belongs to uid {entry.uid}")


def inspect_privacy(api: docker.APIClient, container: str, root: Mount, name: str) -> Finding | None:
    """Return a finding for `riseml pool check` when other users than the owner can reach outputs.

    Args:
        api: the engine.
        container: a container that mounts the root of outputs.
        root: the root.
        name: a file in it that was written with mode 0600.
    """
    mode = _read_mode(api, container, root.target)
    if lets_others_replace(root, mode):
        message = f"{describe_replaceable(root.source, mode)}; no experiment starts there until then"
        return Finding("output", Outcome.FAILED, message)
    if keeps_modes(_read_mode(api, container, f"{root.target}/{name}")):
        return None
    message = f"{root.source} does not keep modes: what jobs leave there, setuid files too, is open to other users"
    return Finding("output", Outcome.NOTE, message)


def lets_others_replace(root: Mount, mode: int) -> bool:
    """Return True for an output root of this mode in which every user may replace folders of others.

    Jobs mount a volume as a whole, so it does not matter who may write at its root.
    """
    return root.volume is None and is_replaceable(mode)


def keeps_modes(mode: int) -> bool:
    """Return True when this is the mode of a file that was written with mode 0600."""
    return not mode & 0o077


def raise_for_link(error: APIError, output: Output) -> None:
    """Raise riseml's own refusal when the engine refused to unpack a folder over something else.

    Raises:
        EngineError: the engine refused for this reason (permanent).
    """
    match = re.search(r"cannot overwrite non-directory (.*) with directory", str(error.explanation))
    if match is not None:
        raise _make_refusal(f"below {output.root.source}, {match[1]} is a link or a file") from error


def to_unix_mode(mode: int) -> int:
    """Return the mode that the engine gives, which Go writes with a sticky bit of its own, as Unix writes it."""
    return mode & 0o777 | (stat.S_ISVTX if mode & _GO_STICKY else 0)


def _read_mode(api: docker.APIClient, container: str, path: str) -> int:
    answer = api.head(_url(api, container), params={"path": path}, timeout=api.timeout)
    raise_for_refusal(answer)
    status: dict[str, Any] = decode_json_header(answer.headers["X-Docker-Container-Path-Stat"])
    return to_unix_mode(int(status["mode"]))


def _read_head(api: docker.APIClient, container: str, path: str) -> tarfile.TarInfo | None:
    """Return the first tar header that the engine sends for a path, without following a link; None: nothing is
    there."""
    answer: requests.Response
    plain = {"Accept-Encoding": "identity"}
    with api.get(
        _url(api, container), params={"path": path}, headers=plain, timeout=api.timeout, stream=True
    ) as answer:
        if answer.status_code == _MISSING:
            return None
        raise_for_refusal(answer)
        with tarfile.open(fileobj=answer.raw, mode="r|") as tar:
            return tar.next()


def _url(api: docker.APIClient, container: str) -> str:
    return f"{api.base_url}/v{api.api_version}/containers/{container}/archive"


def _make_refusal(problem: str) -> EngineError:
    return EngineError(f"OUTPUT_DIR is not safe: {problem}", _HINT, permanent=True)
