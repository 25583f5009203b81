"""`riseml self check`: whether this machine has what riseml needs. Each finding is one line with the next step."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from riseml.executors.capabilities import Finding, Outcome
from riseml.executors.this_machine.disk_use import measure_disk

_OLDEST_PYTHON = (3, 11)
_NEWEST_PYTHON = (3, 13)  # that the tests run on
_FULL = 99  # per cent of a disk
_NEARLY_FULL = 90  # per cent of a disk
_LEAST_ROOM = 2**30  # bytes that environments and outputs of a first run take
_NVIDIA = "0x10de"  # vendor of a PCI device
_DISPLAY = "0x03"  # class of a PCI device that draws or computes
_DRIVER = "libnvidia-ml.so.1"
_UNSYNCHRONISED = 5  # answer of adjtimex(2): TIME_ERROR
_TIMEX_SIZE = 512  # bytes, more than struct timex has on any machine
_NEEDED_CONTROLLERS = frozenset({"cpu", "memory", "pids"})


def check_python(version: Sequence[int]) -> Finding:
    """Return whether riseml runs on a Python."""
    name = f"Python {'.'.join(map(str, version[:3]))}"
    if tuple(version[:2]) < _OLDEST_PYTHON:
        return Finding("python", Outcome.FAILED, f"{name} is too old: install riseml with Python 3.11 or newer")
    if tuple(version[:2]) > _NEWEST_PYTHON:
        return Finding("python", Outcome.NOTE, f"{name} is newer than those on which riseml is tested, 3.11 to 3.13")
    return Finding("python", Outcome.OK, f"{name} at {sys.executable}")


def check_system(name: str = sys.platform) -> Finding:
    """Return whether riseml runs on a system."""
    if name != "linux":
        message = f"{name} is not Linux, where servers and jobs run: use riseml on a Linux machine"
        return Finding("system", Outcome.FAILED, message)
    return Finding("system", Outcome.OK, f"Linux {platform.release()}")


def check_home(home: Path) -> Finding:
    """Return whether there is room in RISEML_HOME, and whether it can be written."""
    folder = next(place for place in (home, *home.parents) if place.exists())
    if not os.access(folder, os.W_OK | os.X_OK):
        message = f"{folder} cannot be written: change its owner, or set RISEML_HOME to a folder of yours"
        return Finding("disk", Outcome.FAILED, message)
    use = measure_disk(folder)
    system = os.statvfs(folder)
    free = system.f_bavail * system.f_frsize
    room = f"{free / 2**30:.1f} GiB free in {home}"
    if free < _LEAST_ROOM or (use is not None and use.percent > _FULL):
        return Finding("disk", Outcome.FAILED, f"{room}: free some space, or set RISEML_HOME to another disk")
    if use is not None and use.percent > _NEARLY_FULL:
        return Finding("disk", Outcome.NOTE, f"{room}, {use.percent} % used: `riseml system clean --images` frees some")
    return Finding("disk", Outcome.OK, room)


def check_clock(now: float, installed: float, state: int | None) -> Finding:
    """Return whether the clock of this machine can be right.

    Args:
        now: its time, seconds since 1970.
        installed: when riseml was installed, by the same clock.
        state: the answer of adjtimex(2); None: the kernel does not say.
    """
    advice = "`timedatectl set-ntp true` lets the machine set it"
    if now < installed:
        return Finding("clock", Outcome.FAILED, f"the clock is earlier than the installation of riseml: {advice}")
    if state == _UNSYNCHRONISED:
        return Finding("clock", Outcome.NOTE, f"the kernel says that nothing keeps the clock right: {advice}")
    return Finding("clock", Outcome.OK, "kept right" if state is not None else "the kernel does not say who keeps it")


def check_cgroups(root: Path = Path("/sys/fs/cgroup")) -> Finding:
    """Return whether the kernel can limit what containers use."""
    if not (root / "cgroup.controllers").is_file():
        if (root / "memory").is_dir():
            advice = "start the kernel with systemd.unified_cgroup_hierarchy=1"
            return Finding("cgroups", Outcome.NOTE, f"version 1, which engines give up: {advice}")
        message = f"{root} has none, so that nothing limits what containers use: mount cgroup2 there"
        return Finding("cgroups", Outcome.FAILED, message)
    controllers = set((root / "cgroup.controllers").read_text(encoding="utf-8").split())
    missing = sorted(_NEEDED_CONTROLLERS - controllers)
    if missing:
        message = (
            f"version 2 without {', '.join(missing)}: nothing limits that; start the kernel without cgroup_disable"
        )
        return Finding("cgroups", Outcome.NOTE, message)
    return Finding("cgroups", Outcome.OK, f"version 2 with {', '.join(sorted(_NEEDED_CONTROLLERS))}")


def check_driver(models: Sequence[str], devices: Path = Path("/sys/bus/pci/devices")) -> Finding:
    """Return whether the driver shows the GPUs of this machine.

    Args:
        models: the GPUs that the driver shows, in words.
        devices: the folder of the PCI devices.
    """
    if models:
        return Finding("driver", Outcome.OK, "; ".join(models))
    count = sum(1 for _ in _find_gpus(devices))
    if not count:
        return Finding("driver", Outcome.OK, "not needed: this machine has no NVIDIA GPU")
    if not _can_load(_DRIVER):
        message = f"{count} NVIDIA GPU without a driver: install your distribution's NVIDIA driver, and restart"
    else:
        message = f"{count} NVIDIA GPU that the driver does not show: `nvidia-smi` says why; after an update, restart"
    return Finding("driver", Outcome.FAILED, message)


def _find_gpus(devices: Path) -> Iterator[Path]:
    for device in sorted(devices.glob("*")):
        vendor = device / "vendor"
        kind = device / "class"
        if vendor.is_file() and vendor.read_text().strip() == _NVIDIA and kind.read_text().startswith(_DISPLAY):
            yield device


def _can_load(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def read_clock_state() -> int | None:
    """Return what adjtimex(2) answers when it changes nothing; None: this system has no such call."""
    try:
        adjtimex: Callable[[object], int] = ctypes.CDLL(None).adjtimex
    except (OSError, AttributeError):
        return None
    state = adjtimex(ctypes.create_string_buffer(_TIMEX_SIZE))
    return state if state >= 0 else None


def check_this_machine(home: Path, models: Sequence[str]) -> Iterator[Finding]:
    """Yield one finding for each requirement that has nothing to do with an engine."""
    yield check_system()
    yield check_python(sys.version_info[:3])
    yield check_home(home)
    yield check_clock(time.time(), Path(__file__).stat().st_mtime, read_clock_state())
    yield check_cgroups()
    yield check_driver(models)
