"""The picture of the way of one experiment: which function does what, from riseml.yml to a line in the terminal.

Every step names an attribute of the code; drawing fails when one does not exist any more.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from xml.sax.saxutils import escape

from scripts.architecture import svg

LANES = ("the command", "the server: HTTP API", "the server: control loop", "the host")
_COLOURS = ("#3b82c4", "#9159c9", "#2f9e59", "#c9700a")
_LANE_SPACE = 24
_STEP_SPACE = 30
_HEAD = 84


@dataclass(frozen=True, slots=True)
class Step:
    """One box of the path."""

    lane: int  # index in LANES
    place: str  # `module:attribute`, below riseml
    text: str
    same_row: bool = False  # beside the step before, not below it


STEPS = (
    Step(0, "spec.config.loader:check_config", "riseml.yml to a Spec, or to all its problems at once"),
    Step(0, "client.server_client:Client.check_submission", "The server refuses now what it would refuse later"),
    Step(0, "files.project.archive:take_snapshot", "Name the files by their content; send what the server lacks"),
    Step(
        1,
        "store.projects.snapshots:SnapshotStore.receive_contents",
        "Keep each content once, by its digest",
        same_row=True,
    ),
    Step(0, "client.server_client:Client.submit", "A key in the request: sent again, it is no second run"),
    Step(
        1,
        "server.api.submissions.submit:plan_submission",
        "A plan for each point of the grid: roles, image",
        same_row=True,
    ),
    Step(1, "store.experiments:ExperimentStore.add_experiments", "Records of experiment and jobs, one transaction"),
    Step(2, "server.reconcile.wake:Wake", "A pass starts now, not at the next poll", same_row=True),
    Step(2, "executors.pool:HostPool.observe_hosts", "Ask every host at the same time, with one deadline"),
    Step(3, "executors.base:Executor.observe", "Containers, networks, environments, capacity", same_row=True),
    Step(2, "control.decide:decide", "Records and observation in; new records and actions out. Pure"),
    Step(2, "store.experiments:ExperimentStore.save_decision", "First the records: a crash here loses nothing"),
    Step(
        2,
        "server.reconcile.action_tracker:ActionTracker.start_actions",
        "Then the actions, in threads; each end wakes the next pass",
    ),
    Step(3, "executors.base:Executor.ensure_image", "EnsureImage: build or fetch the environment", same_row=True),
    Step(3, "executors.base:Executor.prepare", "PrepareHost: output folder and network"),
    Step(3, "executors.base:Executor.start", "StartJob: a container with its own TF_CONFIG"),
    Step(3, "executors.base:Executor.read_log", "The job prints; frames come behind the stored cursor"),
    Step(
        2, "store.logs.log_store:LogStore.append_frames", "LogPump has one follower for each container", same_row=True
    ),
    Step(2, "server.reconcile.notifier:Notifier.publish_lines", "Readers learn that there is more, not what"),
    Step(
        1,
        "server.api.merged_log.log_stream:stream_entries",
        "Merge states and lines; ends come last",
        same_row=True,
    ),
    Step(0, "cli.log_follower:follow_log", "worker.1 | step 1 of 100", same_row=True),
)


@dataclass(frozen=True, slots=True)
class _Cell:
    left: int
    top: int
    height: int


def draw_path() -> str:
    """Return the picture as the text of an SVG file.

    Raises:
        AttributeError: a step names what the code does not have.
    """
    for step in STEPS:
        _find_attribute(step.place)
    lines = [_wrap_step(step) for step in STEPS]
    cells = _place_steps(lines)
    width = len(LANES) * (svg.BOX_WIDTH + _LANE_SPACE) + _LANE_SPACE
    bottom = max(cell.top + cell.height for cell in cells) + 20
    parts = ['<text class="title" x="24" y="34">The way of one experiment, and back as a log line</text>']
    for lane, (name, colour) in enumerate(zip(LANES, _COLOURS, strict=True)):
        left = _lane_left(lane)
        size = f'width="{svg.BOX_WIDTH + 16}" height="{bottom - 56}"'
        parts.append(f'<rect class="band" x="{left - 8}" y="50" {size} rx="8"/>')
        parts.append(f'<text class="name" x="{left + 10}" y="72" style="fill: {colour}">{name}</text>')
    for before, after in pairwise(range(len(STEPS))):
        parts += _draw_step_line(cells[before], cells[after], _COLOURS[STEPS[before].lane])
    for number, (step, text, cell) in enumerate(zip(STEPS, lines, cells, strict=True), 1):
        parts += _draw_step(number, step, text, cell)
    return svg.wrap_svg(parts, width, bottom)


def _find_attribute(place: str) -> object:
    module, _, path = place.partition(":")
    attribute: object = importlib.import_module(f"riseml.{module}")
    for name in path.split("."):
        attribute = getattr(attribute, name)
    return attribute


def _wrap_step(step: Step) -> list[str]:
    module = step.place.partition(":")[0]
    return [*svg.wrap_text([step.text]), module]


def _lane_left(lane: int) -> int:
    return _LANE_SPACE + lane * (svg.BOX_WIDTH + _LANE_SPACE)


def _place_steps(lines: list[list[str]]) -> list[_Cell]:
    rows: list[list[int]] = []
    for index, step in enumerate(STEPS):
        if step.same_row:
            rows[-1].append(index)
        else:
            rows.append([index])
    cells: dict[int, _Cell] = {}
    top = _HEAD
    for row in rows:
        height = svg.box_height(lines[index] for index in row)
        cells |= {index: _Cell(_lane_left(STEPS[index].lane), top, height) for index in row}
        top += height + _STEP_SPACE
    return [cells[index] for index in range(len(STEPS))]


def _draw_step(number: int, step: Step, lines: list[str], cell: _Cell) -> Iterator[str]:
    *text, module = lines
    colour = _COLOURS[step.lane]
    size = f'width="{svg.BOX_WIDTH}" height="{cell.height}"'
    yield f'<rect class="box" x="{cell.left}" y="{cell.top}" {size} rx="6" style="stroke: {colour}"/>'
    name = f"{number}. {step.place.partition(':')[2].rsplit('.', 1)[-1]}"
    yield f'<text class="name" x="{cell.left + 10}" y="{cell.top + 20}">{escape(name)}</text>'
    for index, line in enumerate(text):
        yield f'<text x="{cell.left + 10}" y="{cell.top + 38 + index * svg.LINE}">{escape(line)}</text>'
    y = cell.top + cell.height - 10
    yield f'<text class="place" x="{cell.left + 10}" y="{y}">{escape(module)}</text>'


def _draw_step_line(before: _Cell, after: _Cell, colour: str) -> Iterator[str]:
    """Draw the line to the next step: across when it is in the same row, otherwise down."""
    half = svg.BOX_WIDTH // 2
    if before.top == after.top:
        right = after.left > before.left
        x0 = before.left + (svg.BOX_WIDTH if right else 0)
        x1 = after.left + (0 if right else svg.BOX_WIDTH)
        y = before.top + before.height // 2
        back = x1 - 9 if right else x1 + 9
        yield f'<path class="line" d="M {x0} {y} H {back}" stroke="{colour}" stroke-width="2"/>'
        yield f'<path d="M {back} {y - 5} L {back} {y + 5} L {x1} {y} Z" fill="{colour}"/>'
        return
    x0 = before.left + half
    y0 = before.top + before.height
    x1 = after.left + half
    y1 = after.top
    middle = (y0 + y1) // 2
    yield (
        f'<path class="line" d="M {x0} {y0} C {x0} {middle} {x0} {middle} {(x0 + x1) // 2} {middle}'
        f' S {x1} {middle} {x1} {y1 - 8}" stroke="{colour}" stroke-width="2"/>'
    )
    yield svg.arrow_head(x1, y1, colour)
