"""What `riseml self check` says of a machine: each requirement that holds, and each that does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.executors.capabilities import Finding
from riseml.executors.this_machine.requirements import (
    check_cgroups,
    check_clock,
    check_driver,
    check_home,
    check_python,
    check_system,
    check_this_machine,
    read_clock_state,
)


def _say(finding: Finding) -> str:
    return f"{finding.topic} {finding.outcome.value}: {finding.message}"


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ((3, 10, 14), "python failed: Python 3.10.14 is too old: install riseml with Python 3.11 or newer"),
        ((3, 11, 2), "python ok: Python 3.11.2 at "),
        ((3, 13, 0), "python ok: Python 3.13.0 at "),
        ((3, 14, 0), "python note: Python 3.14.0 is newer than those on which riseml is tested, 3.11 to 3.13"),
    ],
)
def test_python(version: tuple[int, ...], said: str) -> None:
    assert _say(check_python(version)).startswith(said)


@pytest.mark.parametrize(
    ("name", "said"), [("linux", "system ok: Linux "), ("darwin", "system failed: darwin is not ")]
)
def test_system(name: str, said: str) -> None:
    assert _say(check_system(name)).startswith(said)


@pytest.mark.parametrize(
    ("now", "state", "said"),
    [
        (50.0, 0, "clock failed: the clock is earlier than the installation of riseml: `timedatectl"),
        (200.0, 5, "clock note: the kernel says that nothing keeps the clock right: `timedatectl"),
        (200.0, 0, "clock ok: kept right"),
        (200.0, None, "clock ok: the kernel does not say who keeps it"),
    ],
)
def test_clock(now: float, state: int | None, said: str) -> None:
    assert _say(check_clock(now, 100.0, state)).startswith(said)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"cgroup.controllers": "cpuset cpu io memory pids\n"}, "cgroups ok: version 2 with cpu, memory, pids"),
        ({"cgroup.controllers": "cpu pids\n"}, "cgroups note: version 2 without memory: nothing limits that; start "),
        ({"memory/tasks": ""}, "cgroups note: version 1, which engines give up: start the kernel with "),
        ({}, "cgroups failed: "),
    ],
)
def test_cgroups(files: dict[str, str], said: str, tmp_path: Path) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert _say(check_cgroups(tmp_path)).startswith(said)


@pytest.mark.parametrize(
    ("devices", "models", "said"),
    [
        ({}, [], "driver ok: not needed: this machine has no NVIDIA GPU"),
        ({"0": ("0x8086", "0x030000")}, [], "driver ok: not needed: this machine has no NVIDIA GPU"),
        ({"0": ("0x10de", "0x0c0330")}, [], "driver ok: not needed: this machine has no NVIDIA GPU"),
        ({"0": ("0x10de", "0x030200"), "1": ("0x10de", "0x030200")}, [], "driver failed: 2 NVIDIA GPU "),
        ({"0": ("0x10de", "0x030200")}, ["GPU 0: A100, driver 535"], "driver ok: GPU 0: A100, driver 535"),
    ],
)
def test_driver(devices: dict[str, tuple[str, str]], models: list[str], said: str, tmp_path: Path) -> None:
    for name, (vendor, kind) in devices.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "vendor").write_text(f"{vendor}\n")
        (tmp_path / name / "class").write_text(f"{kind}\n")
    assert _say(check_driver(models, tmp_path)).startswith(said)


def test_the_disk_of_a_home_that_is_not_there_yet(tmp_path: Path) -> None:
    finding = check_home(tmp_path / "a" / "b")
    assert finding.topic == "disk"
    assert f" GiB free in {tmp_path}/a/b" in finding.message
    assert not (tmp_path / "a").exists()


def test_this_machine_has_one_finding_for_each_requirement(tmp_path: Path) -> None:
    findings = list(check_this_machine(tmp_path, []))
    assert [finding.topic for finding in findings] == ["system", "python", "disk", "clock", "cgroups", "driver"]
    assert read_clock_state() in (None, *range(6))
