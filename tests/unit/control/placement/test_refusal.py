"""Why no hosts could ever hold a gang, and what to do about it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from riseml.base.names import JobName
from riseml.base.states import State
from riseml.control.placement.refusal import describe_refusal, suggest_remedy
from riseml.spec.config.types import Resources
from tests.unit.control.pools import A100, GANG, GANG_NEEDS, gpu_site, look, place_all, ready, site


def test_a_refusal_names_what_is_missing() -> None:
    apart = replace(look(h1=site(3), h2=site(3)), shared_output=False)
    assert place_all(apart, ready(1, GANG))[1].state is State.PENDING
    assert "it needs several hosts, but they share no output" in describe_refusal(GANG_NEEDS, apart)
    wanted = {JobName("train"): Resources(cpus=1, mem=64, labels=(("gpu", "a100"),))}
    hosts = look(h1=site(3), h2=site(3, labels={"gpu": "t4"}))
    assert describe_refusal(wanted, hosts) == (
        "the job needs 1 cpus, 64 MiB and 0 gpus, on hosts with gpu=a100",
        "host h1 has 3 cpus, 8192 MiB and 0 gpus, and not gpu=a100",
        "host h2 has 3 cpus, 8192 MiB and 0 gpus, and not gpu=a100",
    )
    assert describe_refusal(wanted, look(h1=site(3, labels={"gpu": "a100"}, taking=False))) == ()


def test_a_refusal_names_the_gpus_that_hosts_have() -> None:
    wanted = {JobName("train"): Resources(cpus=1, mem=64, gpus=1, gpu="a100", gpu_mem=81920)}
    assert describe_refusal(wanted, look(h1=gpu_site(A100), h2=site(3))) == (
        "the job needs 1 cpus, 64 MiB and 1 gpus (a100 with 81920 MiB or more)",
        "host h1 has 8 cpus, 8192 MiB and 1 gpus (NVIDIA A100-SXM4-40GB (40960 MiB))",
        "host h2 has 3 cpus, 8192 MiB and 0 gpus",
    )
    unknown = describe_refusal(wanted, look(h1=site(3, "0")))
    assert unknown[1] == "no host knows the models of its GPUs, and `riseml pool check` says why"
    assert "(GPUs of unknown model)" in unknown[2]


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ({"gpu": "h100"}, "no host has the label gpu=h100; the hosts have gpu=a100 (h1), gpu=t4 (h2): correct"),
        ({"zone": "x"}, "no host has the label zone=x; the hosts have gpu=a100 (h1), rack=b2 (h1, h2), gpu=t4 (h2): "),
        ({"gpu": "h100", "zone": "x"}, "no host has gpu=h100, zone=x; the hosts have gpu=a100 (h1), gpu=t4 (h2)"),
        ({"gpu": "a100", "rack": "b2"}, "lower train.resources or the number of workers, or add a host"),
        ({}, "lower train.resources or the number of workers, or add a host"),
    ],
)
def test_the_remedy_names_labels_that_no_host_has(labels: dict[str, str], words: str) -> None:
    pool = look(h1=site(2, labels={"gpu": "a100", "rack": "b2"}), h2=site(2, labels={"gpu": "t4", "rack": "b2"}))
    need = Resources(cpus=8, mem=64, labels=tuple(sorted(labels.items())))
    assert suggest_remedy({JobName("train"): need}, pool).startswith(words)


def test_the_remedy_names_labels_that_no_host_has_together() -> None:
    pool = look(h1=site(2, labels={"gpu": "a100"}), h2=site(2, labels={"rack": "b2"}))
    need = Resources(cpus=1, mem=64, labels=(("gpu", "a100"), ("rack", "b2")))
    found = suggest_remedy({JobName("train"): need}, pool)
    assert found == "no host has gpu=a100 and rack=b2 together: correct train.resources.labels"
