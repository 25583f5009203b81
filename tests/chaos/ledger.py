"""What a harm has cost: the verdict, what is left on the host, and every numbered line."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.chaos.scenes import Scene
from tests.support.rig import Rig


@dataclass(frozen=True, slots=True)
class Tally:
    """The sums of one row of the table. `notes` say what was wrong."""

    injected: int = 0
    experiments: int = 0
    right: int = 0
    left: int = 0
    lost: int = 0
    repeated: int = 0
    notes: tuple[str, ...] = field(default=())

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.injected + other.injected,
            self.experiments + other.experiments,
            self.right + other.right,
            self.left + other.left,
            self.lost + other.lost,
            self.repeated + other.repeated,
            self.notes + other.notes,
        )

    @property
    def clean(self) -> bool:
        """Nothing is wrong, and something was tried."""
        zero = not (self.left or self.lost or self.repeated or self.notes)
        return zero and self.injected > 0 and self.right == self.experiments > 0


def judge(rig: Rig, scene: Scene, injected: int, name: str = "1") -> Tally:
    """Wait until nothing of the experiment is left, and compare it with the truth."""
    found = rig.wait_closed(name)
    notes = [*_verdict(found, scene), *_starts(Path(found["output"]))]
    left = [*rig.containers(), *rig.networks()]
    lost, repeated = _count(_numbers(rig, name), found, scene)
    if left:
        notes.append(f"left on the host: {', '.join(left)}")
    if lost or repeated:
        notes.append(f"{lost} lines lost, {repeated} repeated")
    where = f"{rig.home}: "
    right = not _verdict(found, scene)
    return Tally(injected, 1, int(right), len(left), lost, repeated, tuple(where + note for note in notes))


def _verdict(found: dict[str, Any], scene: Scene) -> list[str]:
    notes = []
    if found["state"] != scene.state or found["reason"] not in scene.reasons:
        notes.append(f"ended {found['state']} {found['reason']} ({found['message']}), not {scene.state}")
    attempts = {job["attempt"] for job in found["jobs"] if job["name"] != "build"}
    if scene.attempts is not None and attempts != {scene.attempts}:
        notes.append(f"took the attempts {sorted(attempts)}, not {scene.attempts}")
    return notes


def _starts(output: Path) -> list[str]:
    """Every attempt of every job started at most once."""
    path = output / "starts"
    starts = Counter(path.read_text().splitlines()) if path.exists() else Counter()
    return [f"{start} was started {times} times" for start, times in starts.items() if times > 1]


def _numbers(rig: Rig, name: str) -> dict[tuple[str, int], list[int]]:
    """The numbers that each attempt of each job printed, in the order of the log; a log may be long."""
    seen: dict[tuple[str, int], list[int]] = {}
    with rig.client() as client, client.stream("GET", f"/v1/experiments/{name}/logs") as answer:
        for line in split_lines(answer.iter_bytes()):
            entry = json.loads(line) if b'"line"' in line else {}
            words = entry.get("text", "").split(" ")
            if len(words) == 3 and words[0] == "line":
                job = entry["id"].partition(".")[2]
                seen.setdefault((job, int(words[1])), []).append(int(words[2]))
    return seen


def split_lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """At newlines only: text may hold any other separator of lines."""
    held = b""
    for piece in pieces:
        *whole, held = (held + piece).split(b"\n")
        yield from whole


def _count(seen: dict[tuple[str, int], list[int]], found: dict[str, Any], scene: Scene) -> tuple[int, int]:
    """Lines that were lost and lines that came twice, over every attempt of every job."""
    lost = repeated = 0
    last = {job["name"]: job["attempt"] for job in found["jobs"]}
    for job in scene.lines:
        seen.setdefault((job, last.get(job, 1)), [])
    for (job, attempt), numbers in seen.items():
        known = set(numbers)
        repeated += len(numbers) - len(known)
        whole = scene.lines.get(job) if attempt == last.get(job) else None
        if whole is None and (not scene.promised or job == scene.removed):
            continue
        expected = _noted(Path(found["output"]), job, attempt, known) if whole is None else whole
        lost += len(set(range(expected)) - known)
    return lost, repeated


def _noted(output: Path, job: str, attempt: int, known: set[int]) -> int:
    """How many lines a job that was ended by others had printed for certain."""
    path = output / f"{job}-{attempt}"
    text = path.read_text().strip() if path.exists() else ""
    return max(int(text) + 1 if text else 0, max(known, default=-1) + 1)
