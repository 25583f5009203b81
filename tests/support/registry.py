"""A private Docker registry on a loopback port, where an engine needs no certificate."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.ports import find_free_port
from tests.support.waiting import DEADLINE, wait_for


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
