"""Local mode, and pools of one and two hosts."""

from __future__ import annotations

from pathlib import Path

from riseml.base.names import HostName
from riseml.base.settings import Settings
from riseml.server.hosts.mode import LocalMode
from riseml.spec.pool.types import HostSpec

SETTINGS = Settings(Path("/home/ann/.riseml"), Path("/home/ann/out"), Path("/home/ann/data"))
ONE = (HostSpec(HostName("h1"), "unix:///a.sock"),)
TWO = (*ONE, HostSpec(HostName("h2"), "unix:///b.sock"))
LOCAL = LocalMode("process")
