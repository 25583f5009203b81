"""`system test`: what each host gets to run, and what is said of hosts that cannot be tested."""

from __future__ import annotations

import json

import pytest
import yaml

from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import HOSTS, FakeServer, end, make_experiment


def serve_hosts(fake_server: FakeServer, *changes: dict[str, object]) -> None:
    hosts = [HOSTS[0] | change for change in changes]
    fake_server.answers["GET /system"] = (200, {"server": fake_server.server, "hosts": hosts})


@pytest.mark.parametrize(
    ("host", "said"),
    [
        ({"name": "gpu1", "state": "silent", "message": "no way there"}, "no way there"),
        ({"name": "gpu1", "state": "silent"}, "it does not answer"),
        ({"name": "gpu1", "state": "draining"}, "it is draining and gets no new jobs; `riseml pool resume gpu1`"),
        ({"name": "gpu2"}, "there is no such host; `riseml pool` shows the hosts"),
    ],
    ids=["silent", "without a reason", "drained", "unknown"],
)
def test_a_host_that_gets_no_job_is_a_failed_test(
    riseml: Riseml, fake_server: FakeServer, host: dict[str, object], said: str
) -> None:
    serve_hosts(fake_server, host)
    done = riseml("system", "test", "gpu1")
    assert (done.code, fake_server.bodies) == (1, [])
    assert said in " ".join(done.out.split())
    assert done.err.endswith("1 test failed.\n")
    assert riseml("system", "test", "--nodename", "gpu1", "--rounds", "0").err == "1 test failed.\n"
    (finding,) = json.loads(riseml("system", "test", "gpu1", "--json").out)["findings"]
    assert (finding["host"], finding["outcome"], finding["id"]) == ("gpu1", "failed", None)


def test_a_job_takes_what_the_options_say(riseml: Riseml, fake_server: FakeServer) -> None:
    serve_hosts(fake_server, {"name": "gpu1", "gpus": 4, "gpus_used": 1})
    fake_server.entries = [end()]
    fake_server.experiments["4"] = make_experiment(state="FAILED", message="exit code 1")
    options = ("--request-cpus", "1.5", "--request-mem", "1GiB", "--seconds", "2", "--rounds", "3", "--stress", "40")
    done = riseml("system", "test", *options, "--force-build-steps")
    assert done.code == 1
    assert "FAILED: exit code 1" in " ".join(done.out.split())
    assert "`riseml logs 4` shows what the job printed." in done.err
    train = yaml.safe_load(fake_server.bodies[0]["config"])["train"]
    assert (train["resources"]["cpus"], train["resources"]["mem"], train["resources"]["gpus"]) == (1.5, "1024MiB", 3)
    assert train["run"].endswith('exec python3 "$program" host 2 2 496 3 3 40 1.5 976'), (
        "two cores, and a half of the memory"
    )
    assert train["max_duration"] == f"{600 + 20 + 240}s"
    assert "The stress of each host takes 2 minutes; `--rounds 1` takes 40 seconds." in done.err
    assert len(train["install"]) == 1


def test_a_log_without_a_report_is_a_failed_test(riseml: Riseml, fake_server: FakeServer) -> None:
    serve_hosts(fake_server, {"name": "gpu1"})
    fake_server.entries = [end()]
    fake_server.experiments["4"] = make_experiment(state="FINISHED")
    done = riseml("system", "test")
    assert (done.code, "its log has no report" in " ".join(done.out.split())) == (1, True)
