"""Three jobs that leave lines open at the same time, and what each reader must have of them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from tests.support.rig import BASE, Rig

JOBS = tuple(f"a.{number}" for number in (1, 2, 3))
_STEPS = 60
_PROGRAM = f"""
import os, time
number, name = int(os.environ["ROLE_INDEX"]), os.environ["RISEML_JOB"]
text = "".join(
    f"{{name}} line {{step:04d}} loss={{step}}.5 end\\n"
    f'riseml.report {{{{"step": {{step}}, "m_{{number}}": {{step}}}}}}\\n'
    for step in range({_STEPS})
).encode()
os.write(1, f"BEGIN{{number}} ".encode() + b"x" * 17000)
time.sleep(0.25)
os.write(1, f" END{{number}}\\n".encode())
for at in range(0, len(text), 512):  # as from a buffered stdout: blocks that end in the middle of a line
    os.write(1, text[at : at + 512])
    os.write(2, b"\\r%d bytes" % at)  # a progress bar beside it
    time.sleep(0.03)
os.write(2, b"\\n")
"""
FILES = {"train.py": _PROGRAM}


def configure(**train: Any) -> str:
    """Return the riseml.yml of the three jobs."""
    keys = {
        "image": BASE,
        "resources": {"cpus": 0.1, "mem": "64MiB"},
        "metrics": {"loss": "loss=([0-9.]+)", "begun": "^BEGIN([0-9])"},
        "roles": {"a": {"count": len(JOBS), "run": "python3 train.py"}},
        **train,
    }
    return json.dumps({"project": "openlines", "train": keys})


def check_readers(rig: Rig, name: str) -> None:
    """Follow the log of the jobs to its end, then compare what each reader has with what the jobs print."""
    live = rig.logs(name, batch=True, reports=True, closed=False)
    _check_entries(name, live, "a client that follows")
    rig.wait_closed(name)
    stored = rig.logs(name, follow=False, reports=True)
    _check_entries(name, stored, "a client that reads the log afterwards")
    for place in range(0, len(stored), len(stored) // 7):
        cursor = stored[place]["cursor"]
        first = next(at for at, entry in enumerate(stored) if entry["cursor"] == cursor)
        rest = rig.logs(name, follow=False, reports=True, cursor=cursor)
        assert _strip(rest) == _strip(stored[first + 1 :]), "a client that resumes"
    page = rig.get(f"/v1/experiments/{name}/lines", count=5000)
    lines = [(line["id"], line["stream"], line["text"]) for line in page["lines"]]
    assert _sort(line for line in lines if line[0] in _name_jobs(name)) == _list_lines(name), "the page"
    (found,) = rig.get(f"/v1/experiments/{name}/metrics")["experiments"]
    counts = {one["name"]: one["count"] for one in found["metrics"] if not one["name"].startswith("riseml.")}
    expected = {"loss": len(JOBS) * _STEPS, "begun": len(JOBS), **{f"m_{n}": _STEPS for n in range(len(JOBS))}}
    assert counts == expected, counts


def _strip(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    shown = [entry for entry in entries if entry["type"] != "ping"]
    return [{key: value for key, value in entry.items() if key != "cursor"} for entry in shown]


def _check_entries(name: str, entries: list[dict[str, Any]], reader: str) -> None:
    lines = [(entry["id"], entry["stream"], entry["text"]) for entry in entries if entry["type"] == "line"]
    for entry in entries:
        if entry["type"] == "lines":
            rows = entry["text"].split("\n")[:-1]
            lines += [(entry["id"], entry["stream"], row.partition(" ")[2]) for row in rows]
    assert _sort(line for line in lines if line[0] in _name_jobs(name)) == _list_lines(name), reader
    reports = defaultdict[str, list[tuple[int, int]]](list)
    for entry in entries:
        if entry["type"] == "report":
            own = [value for metric, value in entry["values"].items() if metric.startswith("m_")]
            reports[entry["id"]] += [(entry["step"], value) for value in own]
    assert reports == {job: [(step, step) for step in range(_STEPS)] for job in _name_jobs(name)}, reader


def _name_jobs(name: str) -> list[str]:
    return [f"{name}.{job}" for job in JOBS]


def _sort(lines: Iterable[tuple[str, str, str]]) -> Mapping[tuple[str, str], list[str]]:
    """Return the lines of each job and stream, in their order."""
    sorted_lines = defaultdict(list)
    for job, stream, text in lines:
        sorted_lines[job, stream].append(text)
    return sorted_lines


def _list_lines(name: str) -> Mapping[tuple[str, str], list[str]]:
    """Return what the jobs print that is shown."""
    lines: dict[tuple[str, str], list[str]] = {}
    for number, job in enumerate(JOBS):
        steps = [f"{job} line {step:04d} loss={step}.5 end" for step in range(_STEPS)]
        reports = [f'riseml.report {{"step": {step}, "m_{number}": {step}}}' for step in range(_STEPS)]
        size = sum(len(line) + 1 for line in (*steps, *reports))
        lines[f"{name}.{job}", "stdout"] = [f"BEGIN{number} {'x' * 17000} END{number}", *steps]
        lines[f"{name}.{job}", "stderr"] = ["".join(f"\r{at} bytes" for at in range(0, size, 512))]
    return lines
