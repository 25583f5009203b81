"""What a host's kernel configuration says about encrypted networks. Real kernels are asked in tests/real/pool."""

from __future__ import annotations

import gzip
from dataclasses import dataclass

import pytest

from riseml.base.errors import EngineError
from riseml.executors.capabilities import Finding, HostReport, Outcome
from riseml.model import Mount
from riseml.server.hosts.encryption import can_encrypt, check_encryption

RELEASE = "6.1.0-18-amd64"
WITH = b"CONFIG_XFRM=y\nCONFIG_INET_ESP=m\n"
WITHOUT = b"CONFIG_XFRM=y\n# CONFIG_INET_ESP is not set\n"


@dataclass
class ConfiguredHost:
    """A host that has these files; a folder without any cannot be mounted."""

    files: dict[str, bytes]

    def check_host(self) -> HostReport:
        return HostReport((), kernel=RELEASE)

    def read_file(self, mount: Mount, name: str) -> bytes | None:
        if not any(path.startswith(mount.source + "/") for path in self.files):
            raise EngineError("bind source path does not exist")
        return self.files.get(f"{mount.source}/{name}")

    def write_file(self, mount: Mount, name: str, content: bytes) -> None:
        raise AssertionError("a check of the kernel writes nothing")

    def check_privacy(self, mount: Mount, name: str) -> Finding | None:
        raise AssertionError("a check of the kernel looks at no output")


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({"/proc/config.gz": gzip.compress(WITH)}, True),
        ({"/proc/config.gz": gzip.compress(WITHOUT)}, False),
        ({"/proc/version": b"", f"/boot/config-{RELEASE}": WITH}, True),
        ({"/proc/config.gz": b"no gzip", f"/boot/config-{RELEASE}": WITHOUT}, False),
        ({f"/lib/modules/{RELEASE}/config": WITH}, True),
        ({"/boot/config-5.10": WITH}, None),
        ({}, None),
    ],
)
def test_the_configuration_of_the_kernel_says_whether_it_has_esp(files: dict[str, bytes], found: bool | None) -> None:  # noqa: FBT001  # a parameter of the test
    assert can_encrypt(ConfiguredHost(files), RELEASE) is found


@pytest.mark.parametrize(
    ("files", "wanted", "outcome", "words"),
    [
        ({"/proc/config.gz": gzip.compress(WITH)}, True, Outcome.OK, "firewalls between the hosts must pass ESP"),
        ({"/proc/config.gz": gzip.compress(WITHOUT)}, True, Outcome.FAILED, "`encrypted: false` in pool.yml"),
        ({}, True, Outcome.NOTE, "the kernel modules esp4"),
        ({}, False, Outcome.NOTE, "can be read and changed on the way"),
    ],
)
def test_a_check_says_what_travels_between_the_hosts(
    files: dict[str, bytes],
    wanted: bool,  # noqa: FBT001  # a parameter of the test
    outcome: Outcome,
    words: str,
) -> None:
    found = check_encryption(ConfiguredHost(files), RELEASE, encrypted=wanted)
    assert (found.topic, found.outcome) == ("encryption", outcome)
    assert words in found.message
