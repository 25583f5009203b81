"""Foreign text made safe for a terminal; times and amounts as short text. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from riseml.base.amounts import (
    count_noun as count_noun,  # re-exported: views import all formats of amounts from here
)
from riseml.base.amounts import format_bytes as format_bytes
from riseml.base.amounts import format_digits
from riseml.base.amounts import format_rate as format_rate
from riseml.base.control_characters import ODD, OTHERS, compile_once, show_odd

if TYPE_CHECKING:
    from riseml import wire

_ODD_BUT_ESCAPE = f"[{OTHERS}]"
_COLOUR = re.compile(r"(\x1b\[[0-9;:]*m)")
_NO_COLOUR = re.compile(r"\x1b(?!\[[0-9;:]*m)")
_RESET = "\x1b[0m"
_AGE_UNITS = (("d", 86400), ("h", 3600), ("m", 60))


def clean_text(text: str, *, colours: bool = False) -> str:
    """Return one line of foreign text without what could rewrite the terminal; `colours` keeps its colours.

    Of a progress bar (text with `\\r`) only the last piece remains. Other control characters are shown as `\\x07`.

    Example:
        >>> clean_text("\\x1b[2J10%\\r100%")
        '100%'
    """
    if text.isprintable() or compile_once(ODD).search(text) is None:
        return text
    if not colours:
        return _clean_piece(text)
    parts = _COLOUR.split(text.rstrip("\r"))
    cleaned = "".join(part if at % 2 else _clean_piece(part) for at, part in enumerate(parts))
    return cleaned + _RESET if len(parts) > 1 else cleaned


def clean_lines(lines: Sequence[str], *, colours: bool) -> Sequence[str]:
    """Return lines of a view without what could rewrite the terminal; `colours` keeps the colours that views give them.

    Views clean foreign text where they use it. This check finds text that a view has missed, and is fast for lines that
    need no cleaning.

    Example:
        >>> clean_lines(["fine", "\\x1b]0;title\\x07 \\x9b2J"], colours=False)
        ['fine', ' ']
    """
    odd = {at for at, line in enumerate(lines) if not line.isprintable() and _is_odd(line, colours=colours)}
    return [clean_text(line, colours=colours) if at in odd else line for at, line in enumerate(lines)] if odd else lines


def _is_odd(line: str, *, colours: bool) -> bool:
    if not colours:
        return compile_once(ODD).search(line) is not None
    return compile_once(_ODD_BUT_ESCAPE).search(line) is not None or _NO_COLOUR.search(line) is not None


def escape_json(text: str) -> str:
    """Return JSON of the same meaning without characters that could rewrite the terminal.

    Example:
        >>> escape_json('"\\x9b"')
        '"\\\\u009b"'
    """
    return text if text.isprintable() else compile_once(ODD).sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _clean_piece(text: str) -> str:
    from riseml.base.terminal_text import plain_line

    return compile_once(ODD).sub(show_odd, plain_line(text))


def format_moment(moment: str) -> str:
    """Return an RFC 3339 moment in UTC, in whole seconds."""
    return f"{moment[:19]}Z"


def format_age(moment: str | None, now: datetime) -> str:
    """Return how long ago a moment was, in its largest whole unit: `8 s`, `3 m`, `2 h`, `5 d`; `-` without a moment."""
    if not moment:
        return "-"
    seconds = max(0.0, (now - parse_moment(moment)).total_seconds())  # the clocks of two machines differ
    unit, length = next(((unit, length) for unit, length in _AGE_UNITS if seconds >= length), ("s", 1))
    return f"{int(seconds // length)} {unit}"


def format_duration(seconds: float | None) -> str:
    """Return how long something took: `45s`, `3m20s`, `2h05m`, `4d03h`; `-` when it is not known.

    Example:
        >>> format_duration(200)
        '3m20s'
    """
    if seconds is None:
        return "-"
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02}s"
    if whole < 86400:
        return f"{whole // 3600}h{whole % 3600 // 60:02}m"
    return f"{whole // 86400}d{whole % 86400 // 3600:02}h"


def count_run_seconds(experiment: wire.ExperimentView, now: datetime) -> float | None:
    """Return for how many seconds an experiment has run, without waits between attempts; None: it has not begun."""
    if not experiment["started_at"]:
        return None
    until = experiment["ended_at"] or experiment.get("waits_since")
    end = parse_moment(until) if until else now
    return max(0.0, (end - parse_moment(experiment["started_at"])).total_seconds() - experiment.get("waited", 0.0))


def parse_moment(moment: str) -> datetime:
    """Return an RFC 3339 moment, as the server writes it, as a datetime in UTC."""
    parsed = datetime.fromisoformat(moment)
    return parsed if parsed.tzinfo is UTC else parsed.astimezone(UTC)  # the first is usual, and lists have many


def format_seconds(seconds: float) -> str:
    """Return a duration in its largest whole unit; a negative one (clocks differ) is `0 seconds`.

    Example:
        >>> format_seconds(7200)
        '2 hours'
    """
    for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= 2 * length:
            return count_noun(int(seconds // length), unit)
    return count_noun(max(0, int(seconds)), "second")


def format_of(used: str, whole: str) -> str:
    """Return an amount of a whole; a shared unit is printed once: `0.37/2 cores`, `16 MiB/2 GiB`."""
    amount, _, unit = used.partition(" ")
    return f"{amount if whole.endswith(f' {unit}') else used}/{whole}"


def format_cores(cores: float) -> str:
    """Return cores with three digits, and small loads with two: `0.37 cores`, `0.0042 cores`, `<0.001 cores`."""
    if 0 < cores < 0.001:
        return "<0.001 cores"
    return f"{cores:.2g} cores" if 0 < cores < 0.0995 else f"{format_digits(cores)} cores"


def format_gib(size: int | None) -> str:
    """Return bytes in GiB with one decimal; `N/A` when they are not known."""
    return "N/A" if size is None else f"{size / 2**30:.1f}"


def format_metric(value: float | str | None, digits: int = 6) -> str:
    """Return a number with so many digits, a text as it is, and `-` for nothing.

    Example:
        >>> format_metric(0.98123456)
        '0.981235'
    """
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if math.isfinite(value) and value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return f"{value:.{digits}g}"


def format_parameters(parameters: Mapping[str, str]) -> str:
    """Return `epochs=20, lr=0.001`."""
    return ", ".join(f"{name}={value}" for name, value in parameters.items())


def describe_goals(search: wire.SearchView | wire.PlanSearch) -> str:
    """Return `maximize accuracy`, or with several objectives `maximize accuracy, minimize latency`."""
    several = [(str(objective["goal"]), objective["metric"]) for objective in search.get("objectives", [])]
    single = (str(search["goal"]), search["metric"])  # all that a server of an earlier version names
    return ", ".join(f"{goal} {metric}" for goal, metric in several or [single])


def format_fields(rows: Sequence[tuple[str, object]]) -> list[str]:
    """Return `Name: value` lines, made safe for a terminal; rows without a value are left out."""
    return [clean_text(f"{name}: {value}") for name, value in rows if value not in (None, "")]
