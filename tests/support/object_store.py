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
_ACCOUNT = "/v1/AUTH_test"
_ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class ObjectStoreServer:
    """The address of the server, and objects in it."""

    endpoint: str

    def put(self, bucket: str, objects: Mapping[str, bytes]) -> None:
        """Make a bucket if it is missing, and objects in it."""
        with self._client() as client:
            for path, content in {"": b"", **objects}.items():
                address = f"{_ACCOUNT}/{bucket}/{path}" if path else f"{_ACCOUNT}/{bucket}"
                client.put(address, content=content).raise_for_status()

    def get(self, bucket: str, path: str) -> bytes:
        """Return the content of an object."""
        with self._client() as client:
            return client.get(f"{_ACCOUNT}/{bucket}/{path}").raise_for_status().content

    def list(self, bucket: str, folder: str) -> list[str]:
        """Return the objects below a folder of a bucket."""
        with self._client() as client:
            answer = client.get(f"{_ACCOUNT}/{bucket}", params={"prefix": f"{folder}/"}).raise_for_status()
        return answer.text.splitlines()

    def entry(self, name: str, *urls: str, **changes: object) -> dict[str, object]:
        """Return the entry of a stores.yml that allows these addresses."""
        keys = {"access_key_id": KEY, "secret_access_key": SECRET}
        readable = {"urls": [*urls]} if urls else {}
        return {"name": name, **readable, "endpoint": self.endpoint, **keys, **changes}

    @contextmanager
    def _client(self) -> Iterator[httpx.Client]:
        """Give a client that has logged in."""
        with httpx.Client(base_url=self.endpoint, timeout=DEADLINE) as client:
            login = {"X-Storage-User": KEY, "X-Storage-Pass": SECRET}
            token = client.get("/auth/v1.0", headers=login).raise_for_status().headers["X-Auth-Token"]
            client.headers["X-Auth-Token"] = token
            yield client


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
