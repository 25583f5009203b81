"""`tfconfig`: the TF_CONFIG of each job, in one line where a shell reads it."""

from __future__ import annotations

import json

from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer

MASTER = {"task": {"type": "master", "index": 0}}


def serve_configs(fake_server: FakeServer, identity: str = "4") -> None:
    answer = {"id": "4", "configs": {"master": MASTER, "build": None}}
    fake_server.answers[f"GET /experiments/{identity}/tfconfig"] = (200, answer)


def test_every_job_has_a_heading_and_its_configuration(riseml: Riseml, fake_server: FakeServer) -> None:
    serve_configs(fake_server)
    lines = riseml("tfconfig", "4").out.splitlines()
    assert lines[0] == "4.master"
    assert json.loads("".join(lines[1:-3])) == MASTER
    assert lines[-3:-1] == ["", "4.build"]
    assert lines[-1].startswith("none: a single job gets none")
    assert json.loads(riseml("tfconfig", "4", "--json").out) == {"master": MASTER, "build": None}


def test_one_job_is_one_line_in_a_pipe_and_several_on_a_terminal(riseml: Riseml, fake_server: FakeServer) -> None:
    serve_configs(fake_server, "4.master")
    assert riseml("tfconfig", "4.master").out == '{"task":{"type":"master","index":0}}\n'
    assert len(riseml("tfconfig", "4.master", live=True).out.splitlines()) == 6


def test_a_job_without_a_configuration_is_an_error(riseml: Riseml, fake_server: FakeServer) -> None:
    serve_configs(fake_server, "4.build")
    refused = riseml("tfconfig", "4.build")
    assert (refused.code, refused.out) == (3, "")
    assert "4.build gets no TF_CONFIG" in refused.err
