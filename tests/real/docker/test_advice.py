"""Advice about jobs that ended badly, from what the real tools print."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.rig import HOG, Rig, gang, single
from tests.support.waiting import DEADLINE

PYTHON = "python3 -c '{}'"
MISSING = PYTHON.format("import cv2")
RESET = PYTHON.format('raise ConnectionResetError(104, "Connection reset by peer")')

ENDS = {
    MISSING: "`cv2` is not installed in the environment: add `pip install opencv-python-headless` to `train.install`",
    "no-such-command": "there is no command `no-such-command`: check the spelling in `train.run`",
    "python3 train.py": "the job has no file ",
    "cat /etc/hostname >/dev/full": "a disk is full: ",
    PYTHON.format('open("config/a.yml")'): "the job has no file config/a.yml: when it is one of your project",
    "kill -BUS $$": "a process could not reach its memory (SIGBUS); /dev/shm is probably too small: raise `shm_size`",
    "exit 9": "",
}


def test_the_end_of_a_job_is_explained(shared_rig: Rig) -> None:
    rig = shared_rig
    names = {run: rig.submit(single(run))["id"] for run in ENDS}
    told = {run: rig.wait_closed(name)["advice"] for run, name in names.items()}
    assert {run: text[: len(ENDS[run])] for run, text in told.items()} == ENDS
    assert told["exit 9"] == ""
    assert all("advice" not in one or not one["advice"] for one in rig.get("/v1/experiments", all=True)["experiments"])


def test_the_cause_is_shown_above_the_frames_of_native_code(shared_rig: Rig) -> None:
    frames = '"\\n".join("  [bt] (%d) /usr/lib/x.so(+0x1) [0x7f01]" % i for i in range(20)) + "\\n\\n"'
    code = f'raise ValueError("no train.txt\\nStack trace:\\n" + {frames})'
    name = shared_rig.submit(single(PYTHON.format(code)))["id"]
    assert shared_rig.wait_closed(name)["last_lines"][-2:] == ["ValueError: no train.txt", "[... 21 more lines]"]


def test_an_install_step_that_fails_is_explained(shared_rig: Rig, tmp_path: Path) -> None:
    name = shared_rig.submit(single("true", install=[f"no-such-tool # {tmp_path}"]))["id"]
    assert shared_rig.wait_closed(name)["advice"].startswith("there is no command `no-such-tool`: ")


def test_a_lost_connection_is_distinguished_from_its_cause(shared_rig: Rig) -> None:
    cause = f"trap '{MISSING.replace(chr(39), chr(34))}; exit 1' TERM; echo ready >$OUTPUT_DIR/ready; sleep 600 & wait"
    wait = 'until [ -e "$OUTPUT_DIR/ready" ]; do sleep 0.05; done'
    name = shared_rig.submit(gang({"worker.1": cause, "master": f"{wait}; {RESET}"}, stop_grace=DEADLINE))["id"]
    found = shared_rig.wait_closed(name)
    assert found["cause"] == "master"
    assert found["last_lines"][-1] == "ConnectionResetError: [Errno 104] Connection reset by peer"
    expected = f"probably a consequence: the other side of a connection ended it, and {name}.worker.1 failed as well: "
    assert found["advice"] == expected + ENDS[MISSING]


@pytest.mark.parametrize(("limits", "said"), [({"limits": {"mem": "64MiB"}}, "its limit of 64 MiB of memory: raise")])
def test_advice_names_the_limit_of_a_job_without_memory(
    shared_docker_rig: Rig, limits: dict[str, object], said: str
) -> None:
    name = shared_docker_rig.submit(single(HOG, **limits))["id"]
    found = shared_docker_rig.wait_closed(name)
    assert (found["reason"], said in found["advice"]) == ("OUT_OF_MEMORY", True), found["advice"]
