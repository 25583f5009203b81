"""`swift_server.py FOLDER`: a private OpenStack Swift with S3 in one process on 127.0.0.1, which prints `ready PORT`.

It runs in an environment of its own (`scripts/engine/swift`). User `test:tester`, secret `s3cret-of-the-tests`, region
us-east-1, path-style addresses.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from pathlib import Path
from typing import Any

PIPELINES = {
    "account": "account-server",
    "container": "container-server",
    "object": "object-server",
    "proxy": "catch_errors cache s3api tempauth copy slo proxy-server",
}
FILTERS = """
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:cache]
paste.filter_factory = swift_server:make_cache
[filter:s3api]
use = egg:swift#s3api
location = us-east-1
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = s3cret-of-the-tests .admin
[filter:copy]
use = egg:swift#copy
[filter:slo]
use = egg:swift#slo
"""


class Cache:
    """What Swift needs of memcached."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[str, float]] = {}

    def get(self, key: str, **_: object) -> Any:
        text, end = self._held.get(key, ("null", 0.0))
        return None if end and end < time.time() else json.loads(text)

    def set(self, key: str, value: object, **options: Any) -> None:
        seconds = options.get("time") or 0
        self._held[key] = (json.dumps(value), time.time() + seconds if seconds else 0.0)

    def delete(self, key: str, **_: object) -> None:
        self._held.pop(key, None)

    def incr(self, key: str, delta: int = 1, **options: Any) -> int:
        value = max(0, int(self.get(key) or 0) + delta)
        self.set(key, value, **options)
        return value

    def decr(self, key: str, delta: int = 1, **options: Any) -> int:
        return self.incr(key, -delta, **options)

    def set_multi(self, mapping: dict[str, object], *_: object, **options: Any) -> None:
        for key, value in mapping.items():
            self.set(key, value, **options)

    def get_multi(self, keys: list[str], *_: object) -> list[Any]:
        return [self.get(key) for key in keys]


def make_cache(_: object, **__: object) -> Any:
    """Return the filter that gives the cache to the others."""
    cache = Cache()

    def wrap(application: Any) -> Any:
        def answer(environ: dict[str, Any], start: Any) -> Any:
            environ["swift.cache"] = cache
            return application(environ, start)

        return answer

    return wrap


def write_configuration(folder: Path, name: str, port: int) -> Path:
    """Write the configuration of one of the four servers."""
    proxy = "account_autocreate = true\n" + FILTERS if name == "proxy" else ""
    path = folder / "etc" / f"{name}-server.conf"
    path.write_text(
        f"[DEFAULT]\nbind_ip = 127.0.0.1\nbind_port = {port}\nswift_dir = {folder}/etc\ndevices = {folder}/disks\n"
        f"mount_check = false\ndisable_fallocate = true\nlog_address = {folder}/none\nlog_level = ERROR\n"
        f"[pipeline:main]\npipeline = {PIPELINES[name]}\n[app:{name}-server]\nuse = egg:swift#{name}\n{proxy}"
    )
    return path


def write_ring(folder: Path, name: str, port: int) -> None:
    """Write the table that says where accounts, containers or objects are: on the one disk."""
    builder = importlib.import_module("swift.common.ring").RingBuilder(4, 1, 1)
    address = {"ip": "127.0.0.1", "port": port, "replication_ip": "127.0.0.1", "replication_port": port}
    builder.add_dev({"id": 0, "region": 1, "zone": 1, "weight": 1, "device": "d1", "meta": "", **address})
    builder.rebalance()
    builder.get_ring().save(f"{folder}/etc/{name}.ring.gz")


def serve(folder: Path) -> None:
    """Start the four servers of Swift, and answer until the process is ended."""
    sys.modules["swift_server"] = sys.modules[__name__]
    (folder / "etc").mkdir(parents=True)
    (folder / "disks" / "d1").mkdir(parents=True)
    (folder / "etc" / "swift.conf").write_text(
        "[swift-hash]\nswift_hash_path_suffix = riseml\n[storage-policy:0]\nname = gold\ndefault = yes\n"
    )
    eventlet, wsgi = importlib.import_module("eventlet"), importlib.import_module("swift.common.wsgi")
    eventlet.hubs.use_hub(wsgi.get_hub())
    eventlet.monkey_patch()
    use_hub, local = eventlet.hubs.use_hub, eventlet.hubs._threadlocal
    # Each server would replace the hub of this thread under the others; further threads need one of their own.
    eventlet.hubs.use_hub = lambda *words: None if hasattr(local, "hub") else use_hub(*words)
    sockets = {name: eventlet.listen(("127.0.0.1", 0), backlog=1024) for name in PIPELINES}
    ports = {name: one.getsockname()[1] for name, one in sockets.items()}
    servers = []
    for name, one in sockets.items():
        path = write_configuration(folder, name, ports[name])
        if name != "proxy":
            write_ring(folder, name, ports[name])
        configuration, logger, _ = wsgi._initrp(str(path), f"{name}-server")
        servers.append(eventlet.spawn(wsgi.run_server, configuration, logger, one))
    print("ready", ports["proxy"], flush=True)
    for server in servers:
        server.wait()


if __name__ == "__main__":
    serve(Path(sys.argv[1]).absolute())
