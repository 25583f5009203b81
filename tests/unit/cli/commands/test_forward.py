"""`forward`: which ports, and which job listens there."""

from __future__ import annotations

import pytest

from riseml.base.errors import NotFound, UsageError
from riseml.cli.commands.forward import choose_answering_job, parse_ports, show_forward
from riseml.client import port_forward
from riseml.client.port_forward import PortPair
from riseml.client.server_client import Client


@pytest.mark.parametrize(
    ("text", "local", "remote"),
    [("8888", 8888, 8888), ("9999:8888", 9999, 8888), ("0:80", 0, 80), ("65535", 65535, 65535)],
)
def test_ports_of_this_machine_and_of_the_job(text: str, local: int, remote: int) -> None:
    pair = parse_ports(text)
    assert (pair.local, pair.remote) == (local, remote)


@pytest.mark.parametrize("text", ["", "0", "80:0", "65536", "99999:80", "80:", ":80", "-1", "²", "80:80:80", "http"])
def test_what_is_not_a_port_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a port"):
        parse_ports(text)


@pytest.mark.parametrize(
    ("answering", "kind", "said"),
    [
        ([], NotFound, "nothing listens on port 8888 in 4.master, 4.worker.1"),
        (["4.master", "4.worker.1"], UsageError, "in several jobs"),
    ],
)
def test_without_a_job_exactly_one_must_listen(
    client: Client, monkeypatch: pytest.MonkeyPatch, answering: list[str], kind: type[Exception], said: str
) -> None:
    jobs = ["4.master", "4.worker.1"]
    monkeypatch.setattr(port_forward, "find_answering_jobs", lambda _address, _jobs, _port: answering)
    with pytest.raises(kind, match=said):
        choose_answering_job(client, jobs, 8888)
    monkeypatch.setattr(port_forward, "find_answering_jobs", lambda _address, jobs, _port: jobs[1:])
    assert choose_answering_job(client, jobs, 8888) == "4.worker.1"


def test_a_forwarded_port_is_an_address_of_this_machine() -> None:
    shown = {"job": "4.master", "port": 8888, "address": "http://127.0.0.1:9999"}
    assert show_forward("4.master", PortPair(9999, 8888)) == shown
