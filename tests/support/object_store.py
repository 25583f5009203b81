"""A real S3 server for tests: OpenStack Swift in a process of its own."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.support.waiting import DEADLINE

KEY, SECRET = "test:tester", "s3cret-of-the-tests"
_ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class ObjectStoreServer:
    """The address of the server, and objects in it."""

    endpoint: str

    def put(self, bucket: str, objects: Mapping[str, bytes]) -> None:
        """Make a bucket if it is missing, and objects in it."""
        with httpx.Client(base_url=self.endpoint, timeout=DEADLINE) as client:
            login = {"X-Storage-User": KEY, "X-Storage-Pass": SECRET}
            token = client.get("/auth/v1.0", headers=login).raise_for_status().headers["X-Auth-Token"]
            for path, content in {"": b"", **objects}.items():
                address = f"/v1/AUTH_test/{bucket}/{path}" if path else f"/v1/AUTH_test/{bucket}"
                client.put(address, content=content, headers={"X-Auth-Token": token}).raise_for_status()

    def entry(self, name: str, *urls: str, **changes: object) -> dict[str, object]:
        """Return the entry of a stores.yml that allows these addresses."""
        keys = {"access_key_id": KEY, "secret_access_key": SECRET}
        return {"name": name, "urls": list(urls), "endpoint": self.endpoint, **keys, **changes}


@contextmanager
def run_object_store(folder: Path) -> Iterator[ObjectStoreServer]:
    """Run the server with its files in a new folder."""
    python = subprocess.run([_ROOT / "scripts/engine/swift"], check=True, capture_output=True, text=True).stdout.strip()
    program = Path(__file__).with_name("swift_server.py")
    with (folder / "swift.log").open("wb") as log:
        words = [python, str(program), str(folder / "swift")]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert process.stdout is not None, "it has a pipe"
        first = process.stdout.readline().split()
        assert first[:1] == ["ready"], (folder / "swift.log").read_text()
        yield ObjectStoreServer(f"http://127.0.0.1:{first[1]}")
    finally:
        process.kill()
        process.communicate()
