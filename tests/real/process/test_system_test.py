"""`riseml system test` on this machine, without Docker."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.command import run_riseml
from tests.support.rig import Rig

QUICK = ("--seconds", "0.1", "--request-cpus", "0.1", "--request-mem", "64MiB", "--rounds", "2", "--stress", "0.1")


def test_a_machine_is_measured_and_its_output_read_from_both_sides(process_rig: Rig, tmp_path: Path) -> None:
    done = run_riseml(["system", "test", *QUICK, "--json"], tmp_path, process_rig.environ())
    assert done.returncode == 0, done.stdout
    (finding,) = json.loads(done.stdout)["findings"]
    assert (finding["host"], finding["outcome"]) == ("this-machine", "ok")
    values = {measure["name"]: measure["value"] for measure in finding["measures"]}
    names = {"cores", "memory", "disk write", "disk read", "output write", "output read", "stress", "stress memory"}
    assert values.keys() >= names
    assert min(values.values()) > 0
    assert values["stress memory"] == 16, "64 MiB without those of Python"
    assert f"{finding['id']}.train stress 2 of 2: " in " ".join(process_rig.lines(finding["id"], follow=False))
    assert json.loads(done.stdout)["links"] == []


def test_a_job_that_does_not_end_well_fails_the_test_by_name(process_rig: Rig, tmp_path: Path) -> None:
    environ = process_rig.environ()
    done = run_riseml(["system", "test", "nowhere", *QUICK], tmp_path, environ)
    assert done.returncode == 1
    assert "there is no such host" in done.stdout
    many = run_riseml(["system", "test", *QUICK, "--gpus", "64"], tmp_path, environ)
    assert many.returncode == 1
    assert "64 gpus" in many.stdout
    small = run_riseml(["system", "test", "--mem", "1MiB"], tmp_path, environ)
    assert small.returncode == 2
    assert "--mem 1MiB is not an amount of memory from 64MiB up" in small.stderr
