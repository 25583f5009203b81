"""Why an ssh to a host has ended, from its last lines and its exit code."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.executors.transports.ssh_command import Destination
from riseml.executors.transports.tunnel import explain_refused_socket, explain_ssh_end
from riseml.spec.scalars.engine_url import parse_engine_url

FAR = Destination("far", parse_engine_url("ssh://ann@gpu1.lab:2222"), Path("pins"), Path("key"))


@pytest.mark.parametrize(
    ("lines", "code", "cause", "hint"),
    [
        (["@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @"], 255, "not the one pinned in pins", "far"),
        (["ED25519 host key for gpu1.lab has changed and you"], 255, "not the one pinned in pins", "far"),
        (
            ["No ED25519 host key is known for [gpu1.lab]:2222 and", "Host key verification failed."],
            255,
            "its host key is not pinned in pins",
            "`ssh-keyscan -p 2222 gpu1.lab >> pins`",
        ),
        (["No ED25519 host key is known for jump.lab and"], 255, "the host key of jump.lab is not pinned", "trust far"),
        (["Host key verification failed."], 255, "its host key is not pinned in pins", "trust far"),
        (
            ["@ WARNING: UNPROTECTED PRIVATE KEY FILE! @"],
            255,
            "ssh does not use key: other users may read",
            "chmod 600",
        ),
        (
            ["ann@gpu1.lab: Permission denied (publickey,password)."],
            255,
            "ann@gpu1.lab refuses the login (publickey,password)",
            "`ssh -i key -p 2222 ann@gpu1.lab true`",
        ),
        ([], -9, "ssh was ended by signal 9", "starts it again"),
        (
            ["ssh: connect to host gpu1.lab port 2222: Connection refused\x07", "debug1: x", ""],
            255,
            "ssh ended with exit code 255: connect to host gpu1.lab port 2222: Connection refused",
            "try `ssh",
        ),
        ([], 1, "ssh ended with exit code 1", "try `ssh"),
    ],
)
def test_the_output_of_ssh_gives_the_cause_of_its_end(lines: list[str], code: int, cause: str, hint: str) -> None:
    found = explain_ssh_end(FAR, lines, code)
    assert cause in found.cause
    assert hint in found.hint


def test_a_refused_socket_is_the_cause_only_in_the_last_line_of_ssh() -> None:
    refused = "channel 1: open failed: connect failed: open failed"
    found = explain_refused_socket(FAR, ["x", refused])
    assert found is not None
    assert "/var/run/docker.sock on the host cannot be opened" in found.cause
    assert explain_refused_socket(FAR, [refused, "x"]) is None
    assert explain_refused_socket(FAR, []) is None
