"""Compare an experiment that met a fault with the truth: its verdict, what is left on the host, every numbered line."""

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
    """The sums of one row of the table."""

    injected: int = 0  # faults
    experiments: int = 0
    right: int = 0  # experiments that ended with the right verdict
    left: int = 0  # containers, networks, processes and folders that were not removed
    lost: int = 0  # lines
    repeated: int = 0  # lines
    notes: tuple[str, ...] = field(default=())  # what was wrong, in words

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
        """True when nothing is wrong and at least one fault was injected."""
        zero = not (self.left or self.lost or self.repeated or self.notes)
        return zero and self.injected > 0 and self.right == self.experiments > 0


def judge(rig: Rig, scene: Scene, injected: int, name: str = "1") -> Tally:
    """Wait until the experiment is closed, and compare it with the truth."""
    found = rig.wait_closed(name)
    notes = [*_check_verdict(found, scene), *_check_starts(Path(found["output"]))]
    left = rig.list_left()
    lost, repeated = _count_lost_and_repeated(_read_numbers(rig, name), found, scene)
    if left:
        notes.append(f"left on the host: {', '.join(left)}")
    if lost or repeated:
        notes.append(f"{lost} lines lost, {repeated} repeated")
    where = f"{rig.home}: "
    right = not _check_verdict(found, scene)
    return Tally(injected, 1, int(right), len(left), lost, repeated, tuple(where + note for note in notes))


def _check_verdict(found: dict[str, Any], scene: Scene) -> list[str]:
    notes = []
    if found["state"] != scene.state or found["reason"] not in scene.reasons:
        notes.append(f"ended {found['state']} {found['reason']} ({found['message']}), not {scene.state}")
    attempts = {job["attempt"] for job in found["jobs"] if job["name"] != "build"}
    if scene.attempts is not None and attempts != {scene.attempts}:
        notes.append(f"took the attempts {sorted(attempts)}, not {scene.attempts}")
    return notes


def _check_starts(output: Path) -> list[str]:
    """Return a note for each attempt of a job that was started more than once."""
    path = output / "starts"
    starts = Counter(path.read_text().splitlines()) if path.exists() else Counter()
    return [f"{start} was started {times} times" for start, times in starts.items() if times > 1]


def _read_numbers(rig: Rig, name: str) -> dict[tuple[str, int], list[int]]:
    """Return the numbers that each attempt of each job printed, in the order of the log, without keeping the log."""
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
    """Split at newlines only: the text may hold other line separators."""
    held = b""
    for piece in pieces:
        *whole, held = (held + piece).split(b"\n")
        yield from whole


def _count_lost_and_repeated(
    seen: dict[tuple[str, int], list[int]], found: dict[str, Any], scene: Scene
) -> tuple[int, int]:
    """Return how many lines were lost and how many came twice, over every attempt of every job."""
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
        expected = _count_noted_lines(Path(found["output"]), job, attempt, known) if whole is None else whole
        lost += max(0, len(set(range(expected)) - known) - scene.dropped)
    return lost, repeated


def _count_noted_lines(output: Path, job: str, attempt: int, known: set[int]) -> int:
    """Return how many lines a job had certainly printed before something else ended it."""
    path = output / f"{job}-{attempt}"
    text = path.read_text().strip() if path.exists() else ""
    return max(int(text) + 1 if text else 0, max(known, default=-1) + 1)
