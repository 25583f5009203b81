"""What nvidia-smi prints, as several drivers print it. No GPU was there: the forms are those of published outputs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riseml.base.errors import EngineError
from riseml.executors.capabilities import GpuReading
from riseml.executors.gpus.nvidia_smi import UnknownField, add_slices, has_slices, make_query, parse_table, read_serial
from riseml.model import Gpu

HEAD = (
    "index, uuid, name, driver_version, pci.bus_id, memory.total [MiB], memory.used [MiB], utilization.gpu [%], "
    "temperature.gpu, power.draw [W], power.limit [W], serial, mig.mode.current\n"
)
A100 = (
    HEAD
    + """\
0, GPU-838f60d9-651f-9166-ea42-f9da674a6947, NVIDIA A100-SXM4-40GB, 535.129.03, 00000000:07:00.0, 40960 MiB, 4 MiB, 0 %, 31, 55.35 W, 400.00 W, 1322520012345, Disabled
1, GPU-2927d07e-3fe9-7904-9e08-b08b82d9a37d, NVIDIA A100-SXM4-40GB, 535.129.03, 00000000:0F:00.0, 40960 MiB, 38211 MiB, 97 %, 68, 391.20 W, 400.00 W, 1322520054321, Disabled
"""  # noqa: E501  # as it is printed
)
SLICED = A100.replace(
    "0 %, 31, 55.35 W, 400.00 W, 1322520012345, Disabled", "[N/A], 31, 55.35 W, 400.00 W, 1322520012345, Enabled"
)
LISTED = """\
GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-838f60d9-651f-9166-ea42-f9da674a6947)
  MIG 3g.20gb     Device  0: (UUID: MIG-ffda444c-c706-57c6-98c9-67c441a0b109)
  MIG 1g.5gb+me   Device  1: (UUID: MIG-GPU-838f60d9-651f-9166-ea42-f9da674a6947/9/0)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-2927d07e-3fe9-7904-9e08-b08b82d9a37d)
"""


def test_a_table_is_read() -> None:
    first, second = parse_table(A100)
    uuid = "GPU-838f60d9-651f-9166-ea42-f9da674a6947"
    gpu = Gpu("0", uuid, "NVIDIA A100-SXM4-40GB", 40960, "535.129.03", "00000000:07:00.0", "1322520012345")
    assert first == GpuReading(gpu, 0.0, 4 * 2**20, 31.0, 55.35, 400.0)
    assert (second.gpu.id, second.percent, second.temperature) == ("1", 97.0, 68.0)


@pytest.mark.parametrize(
    "missing",
    ["[N/A]", "N/A", "[Not Supported]", "[Unknown Error]", "[Insufficient Permissions]", "[GPU is lost]", "ERR!", ""],
)
def test_what_a_driver_does_not_tell_is_unknown(missing: str) -> None:
    row = f"0, GPU-1, GeForce GTX 770, 390.157, 00000000:01:00.0, {missing}, {missing}, {missing}, {missing}, "
    (found,) = parse_table(HEAD + row + f"{missing}, {missing}, {missing}, {missing}\n")
    assert found == GpuReading(Gpu("0", "GPU-1", "GeForce GTX 770", 0, "390.157", "00000000:01:00.0"))
    assert not has_slices(HEAD + row)


@pytest.mark.parametrize(
    ("text", "serial"),
    [("1322520012345", "1322520012345"), (" 0323517084421\n", "0323517084421"), ("0", ""), ("[N/A]", "")],
)
def test_a_serial_number_is_read_where_the_board_has_it(text: str, serial: str) -> None:
    assert read_serial(text) == serial


def test_a_table_without_serial_numbers_is_read() -> None:
    (first, _) = parse_table(A100.replace(" serial,", "").replace(" 1322520012345,", "").replace(" 1322520054321,", ""))
    assert (first.gpu.serial, first.gpu.mem) == ("", 40960)


def test_values_without_units_and_a_warning_before_the_table_are_read() -> None:
    text = A100.replace(" MiB", "").replace(" %", "").replace(" W", "")
    (first, _) = parse_table(f"WARNING: infoROM is corrupted at gpu 0000:07:00.0\n\n{text}")
    assert (first.gpu.mem, first.power) == (40960, 55.35)


def test_an_old_driver_is_asked_without_mig() -> None:
    with pytest.raises(UnknownField, match=r"mig\.mode\.current"):
        parse_table('Field "mig.mode.current" is not a valid field to query.\n\n')
    assert "mig" not in " ".join(make_query(mig=False))
    old = "\n".join(line.rpartition(",")[0] for line in A100.splitlines())
    assert len(parse_table(old)) == 2


def test_a_divided_gpu_is_its_parts() -> None:
    assert has_slices(SLICED)
    assert not has_slices(A100)
    found = add_slices(parse_table(SLICED), LISTED)
    assert [(one.gpu.id, one.gpu.name, one.gpu.mem, one.percent) for one in found] == [
        ("MIG-ffda444c-c706-57c6-98c9-67c441a0b109", "NVIDIA A100-SXM4-40GB MIG 3g.20gb", 20480, None),
        ("MIG-GPU-838f60d9-651f-9166-ea42-f9da674a6947/9/0", "NVIDIA A100-SXM4-40GB MIG 1g.5gb+me", 5120, None),
        ("1", "NVIDIA A100-SXM4-40GB", 40960, 97.0),
    ]
    assert [one.gpu.serial for one in found] == ["1322520012345", "1322520012345", "1322520054321"]


def test_a_machine_without_gpus_has_none() -> None:
    assert parse_table("No devices were found\n") == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest "
            "NVIDIA driver is installed and running.\n\n",
            "couldn't communicate with the NVIDIA driver",
        ),
        (
            "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 570.195\n",
            "Driver/library version mismatch",
        ),
        (
            "Unable to determine the device handle for GPU0000:02:00.0: GPU is lost.  Reboot the system to recover\n",
            "GPU is lost",
        ),
        ("", "it printed nothing"),
        ("exec /usr/bin/nvidia-smi: no such file or directory\n", "no such file or directory"),
        ("\x1b[2J\x07evil\n", "nvidia-smi: .2Jevil$"),
    ],
)
def test_an_error_has_the_words_of_the_driver(text: str, words: str) -> None:
    with pytest.raises(EngineError, match=words):
        parse_table(text)


@given(st.text() | st.text(alphabet="index,uuid \n[]MiB0-9GPU-").map(lambda text: HEAD + text))
def test_no_text_is_read_with_another_error(text: str) -> None:
    try:
        found = parse_table(text)
    except (EngineError, UnknownField):
        return
    assert all(isinstance(one, GpuReading) for one in add_slices(found, text))
