"""Which GPUs of a host jobs may use, on this machine. Hosts elsewhere: tests/real/pool/test_gpus.py."""

from __future__ import annotations

import pytest

from riseml.base.names import HostName
from riseml.executors.capabilities import Finding, Outcome
from riseml.executors.docker.gpu_inventory import GpuInventory
from riseml.executors.docker.helpers import HelperRegistry, Helpers
from riseml.executors.gpus.nvml import GpuReader
from riseml.executors.transports.engine_client import Engine
from riseml.spec.pool.types import HostSpec
from tests.unit.executors.gpus.fake_nvml import Nvml

ENGINE = Engine("unix:///nobody/asks/it.sock")
HELPERS = Helpers(ENGINE, "5e17e4", HelperRegistry())


def make_inventory(nvml: Nvml, gpus: tuple[str, ...] | None) -> GpuInventory:
    """Return the inventory of a host that is this machine, with what pool.yml says of its GPUs."""
    return GpuInventory(HostSpec(HostName("gpu1"), ENGINE.url, gpus=gpus), HELPERS, GpuReader(nvml))


@pytest.mark.parametrize(
    ("named", "ids", "known"),
    [
        (None, ("0", "1"), ["0", "1"]),
        (("1",), ("1",), ["1"]),
        (("GPU-b", "0"), ("GPU-b", "0"), ["GPU-b", "0"]),
        (("7",), ("7",), []),
        ((), (), []),
    ],
)
def test_jobs_may_use_the_gpus_that_pool_yml_names(
    named: tuple[str, ...] | None, ids: tuple[str, ...], known: list[str]
) -> None:
    nvml = Nvml()
    inventory = make_inventory(nvml, named)
    devices = inventory.find_devices({})
    assert (inventory.choose_ids(devices), [one.id for one in devices]) == (ids, known)
    inventory.find_devices({})
    assert nvml.starts == (0 if named == () else 1)


def test_a_check_says_which_gpus_there_are_and_which_are_missing() -> None:
    text = "2 x Tesla V100 (8.0 GiB), driver 535.129.03"
    assert make_inventory(Nvml(), None).check_gpus() == (Finding("gpus", Outcome.OK, text),)
    (found,) = make_inventory(Nvml(), ("0", "7")).check_gpus()
    assert (found.outcome, found.message) == (Outcome.FAILED, "pool.yml names GPU 7, which is not there")


def test_a_machine_without_a_driver_and_without_the_runtime_has_none() -> None:
    inventory = make_inventory(Nvml(works=False), None)
    assert inventory.find_devices({"Runtimes": {"runc": {}}}) == ()
