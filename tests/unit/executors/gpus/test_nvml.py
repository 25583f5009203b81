"""The GPUs of this machine as NVML reports them, and for which jobs its answer is used."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime

from riseml.executors.capabilities import GpuReading
from riseml.executors.gpus.nvml import GpuReader, GpuUse, _has_driver, with_gpu_use
from riseml.model import Gpu, Sample
from tests.unit.executors.gpus.fake_nvml import MIB, Nvml


def list_ids(reader: GpuReader) -> tuple[str, ...]:
    """Return the id of each GPU: its index, or the UUID of each part of a divided one."""
    return tuple(one.gpu.id for one in reader.read_all())


def test_gpus_are_read_by_index_and_by_uuid() -> None:
    nvml = Nvml()
    reader = GpuReader(nvml)
    assert list_ids(reader) == ("0", "1")
    assert reader.read_use(["1"]) == reader.read_use(["GPU-b"]) == GpuUse(50.0, 2048 * MIB, 8192 * MIB)
    assert reader.read_use(["0", "GPU-b"]) == GpuUse(40.0, 3072 * MIB, 16384 * MIB)
    assert nvml.starts == 1


def test_gpus_are_named_and_measured() -> None:
    first, second = GpuReader(Nvml()).read_all()
    gpu = Gpu("0", "GPU-a", "Tesla V100", 8192, "535.129.03", "00000000:3B:00.0", "0323517084421")
    assert first == GpuReading(gpu, 30.0, 1024 * MIB, 40.0, 61.5, None)
    assert (second.gpu.id, second.percent, second.gpu.serial) == ("1", 50.0, "")
    assert GpuReader(Nvml(works=False)).read_all() == ()


def test_a_divided_gpu_is_its_parts() -> None:
    reader = GpuReader(Nvml(divided=True))
    assert list_ids(reader) == ("0", "MIG-0", "MIG-1")
    part = reader.read_all()[1]
    assert (part.gpu.name, part.gpu.mem, part.mem_used, part.percent) == ("Tesla V100 MIG 4gb", 4096, 512 * MIB, None)


def test_an_unknown_value_is_none() -> None:
    reader = GpuReader(Nvml())
    assert reader.read_use([]) is None
    assert reader.read_use(["0", "2"]) is None
    without = GpuReader(Nvml(works=False))
    assert list_ids(without) == ()
    assert without.read_use(["0"]) is None


def test_a_driver_that_fails_is_tried_again() -> None:
    nvml = Nvml()
    reader = GpuReader(nvml)
    assert reader.read_use(["0"]) is not None
    nvml.works = False
    assert reader.read_use(["0"]) is None
    nvml.works = True
    assert reader.read_use(["0"]) is not None


def test_a_machine_without_a_driver_has_no_gpus() -> None:
    """With the real library, which finds no driver here, or finds this machine's GPUs."""
    reader = GpuReader()
    assert (reader.read_use(list_ids(reader)) is None) == (list_ids(reader) == ())


def test_pynvml_is_imported_only_where_a_driver_is() -> None:
    """It takes 3 MiB of a server."""
    program = "import sys\nfrom riseml.executors.gpus.nvml import GpuReader\n"
    program += "GpuReader().read_all()\nprint('pynvml' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == f"{_has_driver()}\n"


def test_a_sample_without_a_reading_keeps_its_gpu_fields_empty() -> None:
    sample = Sample(datetime(2026, 8, 31, tzinfo=UTC), 10.0, 1, 2)
    assert with_gpu_use(sample, None) is sample
    assert with_gpu_use(sample, GpuUse(50.0, 3, 4)) == Sample(sample.at, 10.0, 1, 2, 50.0, 3, 4)
