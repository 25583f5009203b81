"""The supervisor of a job as a program: its order, its record, and what its start costs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import riseml
from riseml.executors.supervision.supervisor import LOG_FILE, STARTED, encode_state, make_command, pack_order
from tests.support.waiting import DEADLINE

PARTS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(PARTS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))


@given(VALUES)
def test_a_record_is_json(value: object) -> None:
    assert encode_state(value) == json.dumps(value)


def encode_as_before(order: Mapping[str, object]) -> bytes:
    return json.dumps(order).encode()


@pytest.mark.parametrize("encode", [pack_order, encode_as_before], ids=["this version", "a server of an earlier one"])
def test_a_supervisor_takes_its_order(encode: Callable[[Mapping[str, object]], bytes], tmp_path: Path) -> None:
    """A server that has run since before an upgrade starts the program that is on the disk now."""
    order = {
        "folder": str(tmp_path),
        "workdir": str(tmp_path),
        "command": ("/bin/sh", "-c", 'echo "$NAME"'),
        "environment": {"PATH": os.defpath, "NAME": "Zoë 😀"},
        "identity": {"server": "s", "title": 'a "b"', "marker": "m", "gpus": ("GPU-1",)},
    }
    command = make_command("title")
    done = subprocess.run(command, input=encode(order), capture_output=True, timeout=DEADLINE, check=True)
    assert (done.stdout.decode(), done.stderr) == (STARTED, b"")
    lock = str(tmp_path / "lock")  # the supervisor holds it until it ends
    subprocess.run(["flock", lock, "true"], check=True, timeout=DEADLINE)
    state = json.loads((tmp_path / "state.json").read_text())
    assert (state["title"], state["gpus"], state["exit_code"]) == ('a "b"', ["GPU-1"], 0)
    assert (tmp_path / LOG_FILE).read_bytes().endswith("Zoë 😀\n".encode())


def test_a_supervisor_imports_little() -> None:
    """Each job has one: the modules that are absent here took a third of the processor time of a short job."""
    root = str(Path(riseml.__file__).parents[1])
    program = "import sys; sys.path.append(sys.argv[1]); import riseml.executors.supervision.supervisor"
    command = [sys.executable, "-I", "-S", "-c", f"{program}; print(*sys.modules)", root]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True, timeout=DEADLINE).stdout.split()
    assert {"json", "typing", "re", "subprocess", "riseml.executors.base"} & set(loaded) == set()
