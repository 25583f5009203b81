"""Which hosts and GPUs are worse than their peers, from the reports of `system test`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from riseml.analysis.host_tests import (
    HostMeasure,
    describe_gpu,
    find_slow,
    list_faults,
    list_host_measures,
    list_link_measures,
    list_notes,
    read_report,
)
from riseml.job_programs.host_test import PREFIX


def gpu(index: int, **more: Any) -> dict[str, Any]:
    found = {"index": index, "model": "H200", "uuid": f"GPU-{index}", "errors": [], "gflops": 3000.0}
    return found | {"memory_mb_s": 2e6, "memory_mib": 1024, "driver": "580.1", "watts": 610.0, "celsius": 54} | more


def report(cores: float = 100, gpus: list[dict[str, Any]] | None = None, **more: Any) -> dict[str, Any]:
    folder = {"write": 300.0, "read": 900.0, "right": True}
    found = {"cores": cores, "memory": 5000.0, "memory_wrong": 0, "disk": folder, "output": folder, "file": "x"}
    return found | {"gpus": gpus or [], "no_gpus": "", "allreduce": None, "no_allreduce": "", "stress": None} | more


def measures(**reports: dict[str, Any]) -> list[HostMeasure]:
    return [measure for host, one in reports.items() for measure in list_host_measures(host, one)]


def test_hosts_that_are_alike_are_not_slow() -> None:
    assert find_slow(measures(a=report(100), b=report(51))) == {}
    assert find_slow(measures(a=report(100))) == {}, "one host has no peers"


def test_a_host_below_half_of_its_peers_is_named_with_the_value() -> None:
    slow = find_slow(measures(a=report(100), b=report(49), c=report(110)))
    assert slow == {"b": ["cores 49 MB/s, and its peers reach 105 MB/s"]}


def test_a_gpu_is_compared_with_gpus_of_its_model_on_all_hosts() -> None:
    other = gpu(7, model="T4", uuid="GPU-t4", gflops=100.0)
    slow = find_slow(measures(a=report(gpus=[gpu(0), gpu(1, gflops=900.0), other]), b=report(gpus=[gpu(2)])))
    assert slow == {"a": ["GPU GPU-1 product 900 GFLOP/s, and its peers reach 3,000 GFLOP/s"]}


def test_a_latency_is_slow_when_it_is_long() -> None:
    links = {("a", "b"): 50.0, ("a", "c"): 60.0, ("b", "c"): 300.0}
    found = [
        measure
        for hosts, latency in links.items()
        for measure in list_link_measures(hosts, {"latency": latency, "sent": 900.0, "received": 900.0})
    ]
    assert find_slow(found) == {"b - c": ["latency 300 us, and its peers reach 55 us"]}


def test_what_is_wrong_is_named_whatever_the_others_reach() -> None:
    broken = {"write": 1.0, "read": 1.0, "right": False}
    bad = report(memory_wrong=3, disk=broken, output=broken, gpus=[gpu(0, errors=["2 of 2048 rows are wrong"])])
    assert list(list_faults(bad)) == [
        "3 MiB of memory did not keep what was written",
        "its disk did not give back what was written",
        "OUTPUT_DIR did not give back what was written",
        "GPU 0 (H200, GPU-0): 2 of 2048 rows are wrong",
    ]
    assert list(list_faults(report())) == []
    assert list(list_notes(report(no_gpus="no driver", no_allreduce="no torch"))) == ["no driver", "no torch"]


def test_the_stress_is_compared_and_told() -> None:
    order = {"rounds": 15, "seconds": 20.0, "cores": 2.0, "mib": 464, "wrong": 0, "ended": []}
    good = report(stress=order | {"reached": 1.987, "held": 464})
    poor = report(stress=order | {"reached": 0.5, "held": 232, "wrong": 2, "ended": ["signal 9", "signal 9"]})
    words = [measure.describe() for measure in list_host_measures("a", good)][-2:]
    assert words == ["stress 1.99 cores", "stress memory 464 MiB"]
    assert list(list_notes(good)) == ["the stress of 2 cores and 464 MiB took 15 times 20 s"]
    assert list(list_faults(good)) == []
    assert find_slow(measures(a=good, b=poor, c=good)) == {
        "b": ["stress 0.50 cores, and its peers reach 1.99 cores"],
    }, "half of the memory is not below a half"
    assert list(list_faults(poor)) == [
        "2 MiB of memory did not keep what was written under stress",
        "a process of the stress ended by itself: signal 9",
    ]


def test_a_gpu_is_described_with_what_the_driver_tells() -> None:
    assert describe_gpu(gpu(0)) == "GPU 0 H200 (GPU-0), driver 580.1, 1 GiB written and read, 610 W, 54 °C"
    assert describe_gpu({"index": 1, "model": "T4", "uuid": "GPU-1", "errors": []}) == "GPU 1 T4 (GPU-1)"


@pytest.mark.parametrize("line", ["", "hello", PREFIX, PREFIX + "[", PREFIX + "7"])
def test_a_job_without_a_report_has_none(line: str) -> None:
    assert read_report(["warming up", line]) is None


def test_a_report_is_one_line_among_others() -> None:
    assert read_report(["warming up", PREFIX + json.dumps({"cores": 1}), "bye"]) == {"cores": 1}
