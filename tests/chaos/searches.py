"""Servers that are killed while a search makes and stops trials, and stores their results."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from riseml.base.faultpoints import Point
from tests.chaos.ledger import Tally
from tests.chaos.patient import PatientRig
from tests.chaos.scenes import Scene
from tests.chaos.sites import Fault, Site
from tests.support.rig import BASE

SEARCH_POINTS = {
    Point.ASKING: "a trial is about to be made",
    Point.ASKED: "a trial stored, not announced",
    Point.TELLING: "a trial ended, not yet noted",
    Point.TOLD: "a result noted, no trial since",
    Point.STOPPING: "a trial to stop, not saved",
    Point.STOPPED: "a stop saved, its job runs",
}
POPULATION_POINTS = {
    Point.INHERITING: "a part of a parent copied",
    Point.INHERITED: "a parent copied, not noted",
}
TRIALS = 6
_RUN = """
echo {{x}} >>"$OUTPUT_DIR/starts"
for step in 1 2; do
echo "riseml.report {\\"step\\": $step, \\"score\\": {{x}}}"; sleep 0.3
points=$(cat "$OUTPUT_DIR"/../*/starts | sort -g)
[ "$(echo "$points" | wc -l)" = 1 ] || [ "$(echo "$points" | head -n 1)" != {{x}} ] || exec sleep 600
done
"""
"""The worst trial so far, which ASHA stops, waits for that where it sees the outputs of the others: as a process."""


def make_search_scene() -> Scene:
    """Return a set of trials one after the other; each reports its parameter, and ASHA stops half of them."""
    train = {
        "image": BASE,
        "run": _RUN,
        "resources": {"cpus": 0.1, "mem": "64MiB"},
        "parameters": {"x": {"uniform": {"min": 0, "max": 1}}},
        "search": {
            "method": "tpe",
            "trials": TRIALS,
            "metric": "score",
            "goal": "maximize",
            "seed": 7,
            "stop": {"method": "asha", "factor": 2},
        },
    }
    return Scene(json.dumps({"project": "toaster", "train": train}))


def run_search_with_crashes(site: Site, orders: Iterable[str]) -> Tally:
    """Run a search while one server after the other dies at the next of the orders."""
    with site.rig(orders) as rig:
        rig.run_scene(make_search_scene())
        return judge_search(rig)


def judge_search(rig: PatientRig) -> Tally:
    """Compare a search that has ended with the truth: every trial once, each with the reports of its own point."""
    found = rig.retry_until_answered(lambda: rig.experiment("1"))
    left = rig.list_left()
    notes = [f"left on the host: {', '.join(left)}"] if left else []
    members, search = found["experiments"], found["search"]
    points = Counter(member["parameters"]["x"] for member in members)
    lost = max(0, TRIALS - len(members))
    repeated = sum(times - 1 for times in points.values()) + max(0, len(members) - TRIALS)
    told = search["complete"] + search["stopped"] + search["failed"]
    if (search["end"], told, search["failed"]) != ("COMPLETED", TRIALS, 0):
        notes.append(f"the search says {search['message']}, end {search['end']}")
    if search["best"]["value"] != max(map(float, points)):
        notes.append(f"the best is {search['best']}, of {sorted(points)}")
    for member in members:
        notes += _check_member(member)
    where = f"{rig.home}: "
    right = not notes and found["state"] == "FINISHED"
    return Tally(rig.deaths, 1, int(right), len(left), lost, repeated, tuple(where + note for note in notes))


def _check_member(member: dict[str, Any]) -> list[str]:
    starts = (Path(member["output"]) / "starts").read_text().split()
    wanted = [member["parameters"]["x"]]
    notes = [] if starts == wanted else [f"{member['id']} with {wanted} ran with {starts}"]
    if member["reason"] not in ("COMPLETED", "STOPPED_EARLY"):
        notes.append(f"{member['id']} ended with {member['reason']}: {member['message']}")
    return notes


GENERATION = 4
GENERATIONS = 4
RATES = (2, 8, 32, 60)
BEGIN = 1000
_STRETCH = f"""
echo x >>"$OUTPUT_DIR/starts"
mkdir -p "$OUTPUT_DIR/checkpoint/inner"; cd "$OUTPUT_DIR/checkpoint"
[ -e blob ] || head -c 3000000 /dev/urandom >blob
level=$(cat level 2>/dev/null || echo {BEGIN})
echo $((level * (64 - {{{{x}}}}) / 64 + {{{{x}}}} * {{{{x}}}} / 16)) >level
echo "$EXPERIMENT_ID ${{RISEML_PARENT:-none}} $RISEML_GENERATION" >>trace
ln -sf blob latest; echo "$EXPERIMENT_ID" >inner/last; sha256sum <blob >inner/digest
echo "riseml.report {{\\"level\\": $(cat level)}}"
"""
"""One stretch of a training whose level falls fast with a large rate, and far with a small one: the best trial has had
both, one after the other."""


def make_population_scene() -> Scene:
    """Return a search with a population, whose trials continue the files of their parents."""
    train = {
        "image": BASE,
        "run": _STRETCH,
        "resources": {"cpus": 0.1, "mem": "64MiB"},
        "parameters": {"x": list(RATES)},
        "search": {
            "method": "pbt",
            "trials": GENERATION * GENERATIONS,
            "metric": "level",
            "goal": "minimize",
            "seed": 7,
            "pbt": {"population": GENERATION, "inherit": ["checkpoint"]},
        },
        "concurrency": 2,
    }
    return Scene(json.dumps({"project": "toaster", "train": train}))


def run_population_with_crashes(site: Site, orders: Iterable[str]) -> Tally:
    """Run a search with a population while one server after the other dies at the next of the orders."""
    with site.rig(orders) as rig:
        rig.run_scene(make_population_scene())
        return judge_population(rig)


def judge_population(rig: PatientRig) -> Tally:
    """Compare a population that has ended with the truth: each trial ran once, from exactly the files of its parent."""
    seen = rig.retry_until_answered(lambda: rig.experiment("1"))
    left = rig.list_left()
    members, search = seen["experiments"], seen["search"]
    count = GENERATION * GENERATIONS
    notes = [f"left on the host: {', '.join(left)}"] if left else []
    if (search["end"], search["complete"], len(members)) != ("COMPLETED", count, count):
        notes.append(f"the search says {search['message']}, end {search['end']}")
    outputs = {member["id"]: Path(member["output"]) for member in members}
    rates = {member["id"]: int(member["parameters"]["x"]) for member in members}
    for place, (name, output) in enumerate(outputs.items()):
        notes += _check_child(name, output, outputs, (place // GENERATION + 1, rates[name]))
    alone = min(_train_alone(rate) for rate in RATES)
    if not notes and search["best"]["value"] >= alone:
        notes.append(f"the best level is {search['best']['value']}, and {alone} with one rate all the time")
    where = f"{rig.home}: "
    right = not notes and seen["state"] == "FINISHED"
    lost = max(0, count - len(members))
    return Tally(rig.deaths, 1, int(right), len(left), lost, 0, tuple(where + note for note in notes))


def _check_child(name: str, output: Path, outputs: dict[str, Path], generation: tuple[int, int]) -> Iterator[str]:
    """Yield what is wrong with the output of a trial. `generation`: its number, and the rate of the trial."""
    number, rate = generation
    *earlier, own = (output / "checkpoint" / "trace").read_text().splitlines()
    _, parent, said = own.split()
    known = outputs.get(parent)
    before = [] if known is None else (known / "checkpoint" / "trace").read_text().splitlines()
    level = BEGIN if known is None else int((known / "checkpoint" / "level").read_text())
    if (output / "starts").read_text() != "x\n":
        yield f"{name} started several times, or has a file that it should not inherit"
    if earlier != before or int(said) != number or (known is None) != (number == 1):
        yield f"{name} of generation {number} continues {parent} with {earlier}, which has {before}"
    if int((output / "checkpoint" / "level").read_text()) != level * (64 - rate) // 64 + rate * rate // 16:
        yield f"{name} did not begin with the level {level} of {parent}"
    digest = hashlib.sha256((output / "checkpoint" / "blob").read_bytes()).hexdigest()
    first = output if known is None else known
    if (first / "checkpoint" / "inner" / "digest").read_text().split()[0] != digest:
        yield f"{name} has another blob than {parent}"
    if (output / "checkpoint" / "latest").readlink() != Path("blob"):
        yield f"{name} lacks a link of {parent}"


def _train_alone(rate: int) -> int:
    """Return the level after all generations with one rate."""
    level = BEGIN
    for _ in range(GENERATIONS):
        level = level * (64 - rate) // 64 + rate * rate // 16
    return level


def search_faults() -> list[Fault]:
    """Return a fault for each point of a search, at each of its visits."""
    points = [Fault(f"kill -9 at {point.value}: {text}", _crash_at(point)) for point, text in SEARCH_POINTS.items()]
    copies = POPULATION_POINTS.items()
    return [*points, *(Fault(f"kill -9 at {point.value}: {text}", _crash_copy_at(point)) for point, text in copies)]


def _crash_copy_at(point: Point) -> Callable[[Site], Tally]:
    """Let the servers die when they have copied a part of the files of a parent, each at another file, or all."""

    def inflict(site: Site) -> Tally:
        return run_population_with_crashes(site, [f"{point.value}:{visit}" for visit in (1, 2, 3, 1)])

    return inflict


def _crash_at(point: Point) -> Callable[[Site], Tally]:
    """Let every server die when it reaches the point for the first time, or, at points before a step, the second."""
    before = point in (Point.ASKING, Point.TELLING, Point.STOPPING)

    def inflict(site: Site) -> Tally:
        orders = [f"{point.value}:1", *itertools.repeat(f"{point.value}:{2 if before else 1}", TRIALS)]
        return run_search_with_crashes(site, orders)

    return inflict
