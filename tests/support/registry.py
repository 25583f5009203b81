"""A private Docker registry on a loopback port, where an engine needs no certificate, and a small image for it."""

from __future__ import annotations

import io
import json
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.ports import find_free_port
from tests.support.rig import BASE
from tests.support.waiting import DEADLINE, wait_for

_TOOLS = "bash cat echo env false head mkdir rm sh sleep sync touch true"


def write_dockerfile(*steps: str) -> io.BytesIO:
    """Return the Dockerfile of an image of a few MB, with a shell and some tools, and with these further steps.

    An engine compresses all that it pushes: `BASE` takes it several seconds.
    """
    copy = 'p=$(which $name); cp -L --parents $p $(ldd $p | grep -o "/[^ ]*") /small'
    lines = (
        f"FROM {BASE} AS whole",
        f"RUN mkdir -p /small/tmp /small/etc; ln -s usr/bin /small/bin; for name in {_TOOLS}; do {copy}; done",
        "FROM scratch",
        "COPY --from=whole /small /",
        *steps,
    )
    return io.BytesIO("\n".join(lines).encode())


@contextmanager
def running_registry(folder: Path) -> Iterator[str]:
    """Run a registry, and give its address with a path; it stores its images in the folder."""
    port = find_free_port()
    config = {
        "version": 0.1,
        "storage": {"filesystem": {"rootdirectory": str(folder / "registry")}},
        "http": {"addr": f"127.0.0.1:{port}"},
    }
    (folder / "config.yml").write_text(json.dumps(config))
    with subprocess.Popen(
        ["/usr/bin/docker-registry", "serve", str(folder / "config.yml")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            wait_for("the registry answers", lambda: _listens(port), DEADLINE)
            yield f"127.0.0.1:{port}/lab"
        finally:
            process.kill()


def _listens(port: int) -> bool:
    with socket.socket() as door:
        return door.connect_ex(("127.0.0.1", port)) == 0
