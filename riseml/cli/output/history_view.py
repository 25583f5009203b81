"""What jobs have used, as a table with the course of each amount. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from riseml.base.names import LOCAL_HOST, THIS_MACHINE
from riseml.base.records import dataclass
from riseml.cli.output.cards import build_cards
from riseml.cli.output.sparklines import draw_sparkline
from riseml.cli.output.style import Style
from riseml.cli.output.tables import Column
from riseml.cli.output.text import clean_text, count_noun, format_bytes, format_cores, format_moment, format_of

if TYPE_CHECKING:
    from riseml import wire

_UNKNOWN = "-"
_SPARK = 24  # columns of a terminal
_MOST_PLACES = 10_000  # the most moments of a sparkline; a server could name any span

Values = Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Course:
    """An amount and its two columns: the mean, with its sparkline, and the maximum."""

    title: str
    pick: Callable[[wire.JobSamples], Values]
    show: Callable[[float], str]
    requested: Callable[[wire.JobSamples], float] | None = None  # the job's requested amount, in the same unit
    most: bool = True  # whether the maximum has a column


@dataclass(frozen=True, slots=True)
class TimeScale:
    """The time that all bars of a table show."""

    first: int  # seconds since 1970
    last: int
    step: int  # seconds

    def place(self, times: Sequence[int], values: Values) -> Values:
        """Return a value or None for each step of the scale; with too many steps, return the values as they are."""
        step = max(1, self.step)
        count = (self.last - self.first) // step + 1
        if count > _MOST_PLACES:
            return values
        buckets = {(at - self.first) // step: value for at, value in zip(times, values, strict=False)}
        return [buckets.get(place) for place in range(count)]


def _show_cores(value: float) -> str:
    return format_cores(value / 100)


def _show_percent(value: float) -> str:
    return f"{value:.0f} %"


def _show_rate(value: float) -> str:
    return f"{format_bytes(value)}/s"


_COURSES = (
    Course("CPU", lambda samples: samples["cpu"], _show_cores, lambda samples: samples["cpus"] * 100),
    Course("MEM", lambda samples: samples["mem_used"], format_bytes, lambda samples: samples["mem_mib"] * 2**20),
    Course("GPU", lambda samples: samples["gpu"], _show_percent),
    Course("GPU MEM", lambda samples: samples["gpu_mem_used"], format_bytes),
    Course("NET in", lambda samples: samples["net_in"], _show_rate, most=False),
    Course("NET out", lambda samples: samples["net_out"], _show_rate, most=False),
    Course("DISK read", lambda samples: samples["disk_read"], _show_rate, most=False),
    Course("DISK write", lambda samples: samples["disk_write"], _show_rate, most=False),
)


def list_past_use(history: wire.SampleHistory, style: Style, *, bars: bool) -> list[str]:
    """Return what jobs have used: means over time, and maxima. The bars of all jobs have one scale of time.

    Args:
        history: the answer of the server.
        style: has the width.
        bars: draw the course beside each mean.
    """
    jobs = [job for job in history["jobs"] if job["time"]]
    if not jobs:
        return []
    scale = TimeScale(min(min(job["time"]) for job in jobs), max(max(job["time"]) for job in jobs), history["step"])
    courses = [course for course in _COURSES if any(_select_known(course.pick(job)) for job in jobs)]
    hosts = any(job["host"] not in (None, LOCAL_HOST, THIS_MACHINE) for job in jobs)
    heads = [Column("ID"), Column("STATE", states=True), *([Column("HOST")] * hosts)]
    columns = [*heads, *(column for course in courses for column in _list_columns(course))]
    rows = []
    for job in jobs:
        cells = [cell for course in courses for cell in _list_cells(course, job, scale if bars else None)]
        rows.append([job["id"], job["state"], *([job["host"] or _UNKNOWN] * hosts), *cells])
    count = sum(len(job["time"]) for job in jobs)
    span = f"{format_moment(history['since'])} to {format_moment(history['until'])}"
    note = clean_text(f"{span}: {count_noun(count, 'value')}, each the mean of {history['step']} s")
    return [*build_cards(columns, rows, len(heads), style), "", note]


def _list_columns(course: Course) -> list[Column]:
    mean = Column(f"{course.title} mean/asked" if course.requested else f"{course.title} mean", right=True)
    return [mean, *([Column(f"{course.title} most", right=True)] * course.most)]


def _list_cells(course: Course, samples: wire.JobSamples, scale: TimeScale | None) -> list[str]:
    """Return the cells of one amount of one job; with bars when there is a scale for them."""
    values = course.pick(samples)
    measured = _select_known(values)
    if not measured:
        return [_UNKNOWN] * (1 + course.most)
    mean = course.show(sum(measured) / len(measured))
    if course.requested is not None:
        mean = format_of(mean, course.show(course.requested(samples)))
    if scale is not None:
        requested = 0.0 if course.requested is None else course.requested(samples)
        mean = f"{draw_sparkline(scale.place(samples['time'], values), _SPARK, requested)} {mean}"
    return [mean, *([course.show(max(measured))] * course.most)]


def _select_known(values: Values) -> list[float]:
    return [value for value in values if value is not None]
