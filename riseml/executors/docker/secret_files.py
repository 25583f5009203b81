"""Secrets of a container as files on a tmpfs, which its shell fills from its standard input before the job begins.

No value is in the configuration of the container, in its image or on a disk: `docker inspect` shows the mount alone.
The server connects to the input before it starts the container. A server that dies meanwhile closes the input: the
shell sees that the end of the values is missing, and the job fails and can be tried again.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from riseml.executors.transports.engine_client import Engine
from riseml.model import Environment, Launch

FOLDER = "/run/riseml/secrets"
VARIABLE = "RISEML_SECRETS"

_SIZE = "16m"
_MOST_WAIT = 30.0  # seconds for which the shell of a container may take nothing of its input
_END = "riseml-end"
_FILL = f"""umask 077
riseml_end=
while IFS=' ' read -r riseml_name riseml_size; do
  [ "$riseml_name" != {_END} ] || {{ riseml_end=1; break; }}
  dd bs=1 count="$riseml_size" of="{FOLDER}/$riseml_name" 2>/dev/null || exit 125
done
[ -n "$riseml_end" ] || {{ echo 'riseml: the secrets of this job did not arrive' >&2; exit 125; }}
unset riseml_name riseml_size riseml_end
exec "$@" </dev/null"""
"""`read` takes single bytes of a pipe, and `dd` exactly as many as it is told to."""


def add_secret_files(request: dict[str, Any], launch: Launch) -> dict[str, Any]:
    """Return the request of a container that gets the secrets of a launch; the same one when it has none."""
    if not launch.secrets:
        return request
    owner = f"uid={launch.owner.uid},gid={launch.owner.gid}"
    tmpfs = {FOLDER: f"rw,noexec,nosuid,nodev,size={_SIZE},mode=0700,{owner}"}
    return {
        **request,
        "Cmd": ["/bin/sh", "-c", _FILL, "riseml", *request["Cmd"]],
        "Env": [*request["Env"], f"{VARIABLE}={FOLDER}"],
        "OpenStdin": True,
        "StdinOnce": True,
        "AttachStdin": True,
        "HostConfig": {**request["HostConfig"], "Tmpfs": tmpfs},
    }


@contextmanager
def send_secret_files(engine: Engine, name: str, files: Environment) -> Iterator[None]:
    """Send the files to a container that starts inside the `with` block; nothing when there are none."""
    if not files:
        yield
        return
    stream, _ = engine.open_stream(f"/containers/{name}/attach?stream=1&stdin=1", None)
    with stream:
        yield
        stream.settimeout(_MOST_WAIT)
        stream.sendall(pack_files(files))
        stream.shutdown(socket.SHUT_WR)


def pack_files(files: Environment) -> bytes:
    """Return what the shell of the container reads: a line with the name and size of each file, and its bytes."""
    pieces: list[bytes] = []
    for name, value in files:
        content = value.encode("utf-8", "surrogateescape")
        pieces += (f"{name} {len(content)}\n".encode(), content)
    return b"".join([*pieces, f"{_END}\n".encode()])
