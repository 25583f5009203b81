"""Whether the kernel of a host encrypts networks across hosts, read from the configuration that it was built with."""

from __future__ import annotations

import gzip
import re
import zlib

from riseml.base.errors import RisemlError
from riseml.executors.capabilities import Finding, HostCheck, Outcome
from riseml.model import Mount

_ESP = re.compile(rb"^CONFIG_INET_ESP=[ym]$", re.MULTILINE)  # the protocol of Docker's option `encrypted`
_TOPIC = "encryption"


def check_encryption(host: HostCheck, kernel: str, *, encrypted: bool) -> Finding:
    """Return the finding about encryption between this host and the others.

    Args:
        host: one that answers.
        kernel: the release of its kernel: `6.1.0-18-amd64`.
        encrypted: networks across hosts are encrypted.
    """
    if not encrypted:
        message = "`encrypted: false` in pool.yml: what jobs send to other hosts can be read and changed on the way"
        return Finding(_TOPIC, Outcome.NOTE, message)
    match can_encrypt(host, kernel):
        case True:
            needs = "firewalls between the hosts must pass ESP (IP protocol 50) and UDP 4789"
            return Finding(_TOPIC, Outcome.OK, f"its kernel encrypts networks across hosts; {needs}")
        case False:
            message = (
                f"its kernel {kernel} was built without ESP (CONFIG_INET_ESP), so jobs of this host cannot reach other "
                "hosts: use another kernel, or `encrypted: false` in pool.yml"
            )
            return Finding(_TOPIC, Outcome.FAILED, message)
        case None:
            message = (
                "networks across hosts are encrypted; that needs ESP (IP protocol 50) and UDP 4789 between the hosts, "
                "and the kernel modules esp4 and xfrm_user; without them jobs of this host cannot reach other hosts"
            )
            return Finding(_TOPIC, Outcome.NOTE, message)


def can_encrypt(host: HostCheck, kernel: str) -> bool | None:
    """Return whether a host's kernel was built with ESP; None when its configuration is in none of the usual places."""
    places = (("/proc", "config.gz"), ("/boot", f"config-{kernel}"), (f"/lib/modules/{kernel}", "config"))
    for folder, name in places:
        try:
            content = host.read_file(Mount(folder, "/host", read_only=True), name)
            if content is not None:
                return _ESP.search(gzip.decompress(content) if name.endswith(".gz") else content) is not None
        except (RisemlError, OSError, EOFError, zlib.error):  # no such folder, or no gzip: the next place may have it
            continue
    return None
