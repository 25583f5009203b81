"""Parse nvidia-smi's output: its table of GPUs (`--query-gpu`), its list with MIG devices (`-L`), its errors. Pure.

Drivers differ: a value may be missing in several spellings, units are in the header or beside the value, and older
drivers do not know every field. tests/unit/executors/nvidia_smi.txt has the outputs that were tried.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import replace

from riseml.base.errors import EngineError
from riseml.executors.capabilities import GpuReading
from riseml.model import Gpu

_FIELDS = (
    "index",
    "uuid",
    "name",
    "driver_version",
    "pci.bus_id",
    "memory.total",
    "memory.used",
    "utilization.gpu",
    "temperature.gpu",
    "power.draw",
    "power.limit",
    "serial",
)
_MIG = "mig.mode.current"  # unknown to drivers before 450
LIST_COMMAND = ("nvidia-smi", "-L")
_HOPELESS = re.compile(
    r"NVIDIA-SMI has failed.*|Failed to initialize NVML.*|Unable to determine the device handle.*|.*is lost.*"
    r"|.*couldn't find libnvidia-ml\.so.*",
    re.IGNORECASE,
)
_UNKNOWN_FIELD = re.compile(r'Field "(?P<field>[^"]+)" is not a valid field to query', re.IGNORECASE)
_NONE = re.compile(r"No devices were found", re.IGNORECASE)
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_SERIAL = re.compile("[0-9A-Z]{4,40}", re.ASCII)
_LISTED = re.compile(r"GPU (?P<index>\d+): (?P<name>.+) \(UUID: (?P<uuid>GPU-[^)]+)\)\s*")
_SLICE = re.compile(r"\s+MIG (?P<profile>\S+)\s+Device\s+\d+: \(UUID: (?P<uuid>MIG-[^)]+)\)\s*")
_PROFILE_MEMORY = re.compile(r"\.(?P<gib>\d+)gb")
_LONGEST_NAME = 100  # characters
_MIB = 2**20  # bytes
_GIB = 1024  # MiB


class UnknownField(Exception):
    """The driver does not know a field; ask without it."""


def make_query(*, mig: bool = True) -> tuple[str, ...]:
    """Return the command that prints the table; without `mig` for a driver that does not know MIG."""
    return ("nvidia-smi", f"--query-gpu={','.join((*_FIELDS, *((_MIG,) if mig else ())))}", "--format=csv")


def parse_table(text: str) -> tuple[GpuReading, ...]:
    """Return the GPUs of a table; a value that the driver does not report is None.

    Raises:
        UnknownField: the driver is too old for `mig`.
        EngineError: nvidia-smi failed (the message quotes it), or its table cannot be read.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    unknown = _UNKNOWN_FIELD.search(text)
    if unknown is not None:
        raise UnknownField(unknown["field"])
    head = next((place for place, line in enumerate(lines) if line.startswith("index,")), None)
    if head is None:
        if _NONE.search(text):
            return ()
        raise EngineError(f"nvidia-smi: {_find_complaint(lines)}", "run `nvidia-smi` on the host")
    rows = csv.reader(lines[head:], skipinitialspace=True)
    keys = [name.partition(" [")[0].strip() for name in next(rows)]
    return tuple(_read_row(dict(zip(keys, row, strict=True))) for row in rows if len(row) == len(keys))


def has_slices(text: str) -> bool:
    """Return True when the table says that a GPU is divided into MIG devices."""
    return re.search(r"(?<![A-Za-z])Enabled\s*$", text, re.MULTILINE) is not None


def add_slices(readings: tuple[GpuReading, ...], listed: str) -> tuple[GpuReading, ...]:
    """Return the GPUs with those that are divided replaced by their MIG devices, which jobs get instead.

    nvidia-smi does not measure MIG devices, so their readings are unknown.

    Args:
        readings: the GPUs of the table.
        listed: what `LIST_COMMAND` printed.
    """
    slices: dict[str, list[Gpu]] = {}
    whole = {reading.gpu.uuid: reading.gpu for reading in readings}
    parent: Gpu | None = None
    for line in listed.splitlines():
        if (match := _LISTED.fullmatch(line)) is not None:
            parent = whole.get(match["uuid"])
        elif parent is not None and (match := _SLICE.fullmatch(line)) is not None:
            memory = _PROFILE_MEMORY.search(match["profile"])
            name = f"{parent.name} MIG {match['profile']}"[:_LONGEST_NAME]
            mem = int(memory["gib"]) * _GIB if memory else 0
            instance = replace(parent, id=match["uuid"], uuid=match["uuid"], name=name, mem=mem)
            slices.setdefault(parent.uuid, []).append(instance)
    return tuple(
        part
        for reading in readings
        for part in ([GpuReading(gpu) for gpu in slices[reading.gpu.uuid]] if reading.gpu.uuid in slices else [reading])
    )


def _read_row(row: Mapping[str, str]) -> GpuReading:
    index = row["index"].strip()
    total = _read_number(row["memory.total"])
    used = _read_number(row["memory.used"])
    gpu = Gpu(
        id=index,
        uuid=row["uuid"].strip(),
        name=_clean_line(row["name"]),
        mem=int(total or 0),
        driver=_clean_line(row["driver_version"]),
        bus=_clean_line(row["pci.bus_id"]),
        serial=read_serial(row.get("serial", "")),
    )
    return GpuReading(
        gpu,
        percent=_read_number(row["utilization.gpu"]),
        mem_used=None if used is None else int(used) * _MIB,
        temperature=_read_number(row["temperature.gpu"]),
        power=_read_number(row["power.draw"]),
        power_limit=_read_number(row["power.limit"]),
    )


def read_serial(text: str) -> str:
    """Return the serial number of a board; empty for `[N/A]`, 0 and the like, which a card without a number reports.

    Example:
        >>> read_serial("1322520012345"), read_serial("[N/A]")
        ('1322520012345', '')
    """
    serial = text.strip()
    return serial if _SERIAL.fullmatch(serial) and serial.strip("0") else ""


def _read_number(text: str) -> float | None:
    """Return the number of `61.50 W`; None for `[N/A]`, `[Not Supported]`, `[Unknown Error]` and the like."""
    match = _NUMBER.match(text.strip())
    return None if match is None else float(match[0])


def _find_complaint(lines: list[str]) -> str:
    """Return the line that says why nvidia-smi printed no table."""
    complaint = next((line for line in lines if _HOPELESS.fullmatch(line.strip())), None)
    return _clean_line(complaint or (lines[-1] if lines else "it printed nothing"))


def _clean_line(text: str) -> str:
    return "".join(char for char in text.strip() if char.isprintable())[: 2 * _LONGEST_NAME]
