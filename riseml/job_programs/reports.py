"""The module `riseml` inside a job: reports of a training script become metrics of its experiment.

    import riseml
    riseml.report(step=120, loss=0.31)
    riseml.report_result(accuracy=0.97, loss=0.1)
    riseml.progress(450, 1000)

Python 3.6 or newer, standard library only. It never raises, and outside of a job it does nothing. A report is one line
on the stdout of the process, which the server takes out of the log:

    riseml.report {"step": 120, "loss": 0.31}

The module writes the record separator (\\x1e) before it, so that a report inside of an unfinished line, such as a
progress bar, is found, too. `media_reports` adds pictures, sound, tables and texts to the module.
"""

import functools
import json
import os
import select
import sys
import threading
import time

DONE_METRIC = "riseml.done"
"""The name of a value that is no metric: how much a job says is done."""

OF_METRIC = "riseml.of"
"""The name of a value that is no metric: of how much."""

AT_METRIC = "riseml.at"  # in a report of values that were noted earlier, elsewhere: when, in seconds since 1970
_LONGEST = 3500  # bytes of a line; the kernel writes up to 4096 bytes to a pipe as one piece
_MOST = 50  # metrics of a line
_LARGEST_STEP = 10**15 - 1  # that the server takes
_LONGEST_NAME = 64  # characters
_MOST_WORDS = 100  # different names of which the log reports something
_STDOUT = 1
_PROGRESS_EVERY = 0.5  # seconds between two lines about the progress


class _Pace:
    """When the last line about the progress was written."""

    last = float("-inf")  # seconds


_pace = _Pace()
_complaints = threading.Event()  # set once a value was left out, so that the log reports it only once


def report(*positional: object, **values: object) -> None:
    """Report metrics of the training so far: numbers by name, and `step`, an integer, if you count steps.

    Names that are not identifiers go into a dictionary as the only positional argument: `report({"val loss": 0.3},
    step=4)`. A name has printable characters of any script; one of more than 64 characters is shortened.
    """
    try:
        if "RISEML_JOB" in os.environ:
            for mapping in positional:
                values = dict(mapping, **values)  # type: ignore[call-overload]  # no mapping: the complaint below
            send_metrics(values)
    except Exception as error:  # noqa: BLE001  # a report never ends a training
        _warn_once(repr(error))


def report_result(*positional: object, **values: object) -> None:
    """Report results, as RiseML's function of this name does: `riseml.report_result(accuracy=0.97)`.

    RiseML's functions took the ID of an experiment, too; here a report is always of its own experiment.
    """
    values.pop("experiment_id", None)
    report(*positional, **values)


def progress(done: object, of: object) -> None:  # names: `progress(done, of)`, as users call it
    """Tell how far the training is: `progress(450, 1000)`. It writes two lines a second, however often it is called."""
    try:
        if "RISEML_JOB" not in os.environ:
            return
        amounts = float(done), float(of)  # type: ignore[arg-type]  # what is not a number is left out
        now = time.monotonic()
        if now - _pace.last >= _PROGRESS_EVERY or amounts[0] >= amounts[1]:
            _pace.last = now
            _write_line([f'"{DONE_METRIC}": {json.dumps(amounts[0])}', f'"{OF_METRIC}": {json.dumps(amounts[1])}'])
    except Exception as error:  # noqa: BLE001  # a report never ends a training
        _warn_once(repr(error))


def send_metrics(values: "dict[str, object]", at: "float | None" = None) -> None:
    """Write the lines of a report: more than one when it has many metrics.

    Args:
        values: by name, and perhaps `step`.
        at: when somebody else has noted these values, in seconds since 1970; None: they are reported now.
    """
    begin = [] if at is None else [f'"{AT_METRIC}": {at!r}']
    raw_step = values.pop("step", None)
    if raw_step is not None:
        step = int(raw_step)  # type: ignore[call-overload]  # as above
        if abs(step) > _LARGEST_STEP:
            raise ValueError("a step has at most 15 digits")
        begin.append(f'"step": {step}')
    pairs = begin[:]
    size = 0
    for name, value in values.items():
        try:
            number = float(value)  # type: ignore[arg-type]  # what is not a number is left out
        except Exception as error:  # noqa: BLE001  # the other values are sent
            _warn_once(f"{name}: {error!r}")
            continue
        quoted, length = _quote_name(name)
        if not quoted:
            continue
        pair = f"{quoted}: {json.dumps(number)}"
        length += len(pair)
        if size + length > _LONGEST or len(pairs) > _MOST:
            _write_line(pairs)
            pairs = begin[:]
            size = 0
        pairs.append(pair)
        size += length + 2
    if len(pairs) > len(begin):
        _write_line(pairs)


@functools.lru_cache(maxsize=1000, typed=True)
def _quote_name(name: object) -> "tuple[str, int]":
    """Return a name as text of JSON, and by how many bytes it is longer than its characters; empty: it is left out.

    Names keep their letters. A name that is too long ends with its hash, so that two names never become one.
    """
    text = str(name)
    if not text or text == "step" or not text.isprintable():
        _tell_once(f"a report was left out: {text!r:.200} is not a name of a metric: write printable characters")
        return "", 0
    if len(text) > _LONGEST_NAME:
        import hashlib

        short = f"{text[: _LONGEST_NAME - 9]}~{hashlib.sha256(text.encode()).hexdigest()[:8]}"
        _tell_once(f"the metric {text[:200]!r} has more than {_LONGEST_NAME} characters: it is {short!r}")
        text = short
    quoted = json.dumps(text, ensure_ascii=False)
    return quoted, len(quoted.encode()) - len(quoted)


@functools.lru_cache(maxsize=_MOST_WORDS)
def _tell_once(problem: str) -> None:
    """Print on stderr what a report cannot keep, once for each name."""
    if _tell_once.cache_info().currsize < _MOST_WORDS - 1:
        print_problem(problem)


def _write_line(pairs: "list[str]") -> None:
    """Write one report, after flushing the script's own output."""
    if sys.stdout is not None and not sys.stdout.closed:
        sys.stdout.flush()
    body = ", ".join(pairs)
    data = ("\x1eriseml.report {" + body + "}\n").encode()  # no `{{`: a riseml.yml may have this text in `run`
    while data:
        try:
            data = data[os.write(_STDOUT, data) :]
        except BlockingIOError:  # the pipe is full, and the script has made it non-blocking
            select.select([], [_STDOUT], [])


def _warn_once(problem: str) -> None:
    """Print on stderr, once, that a value was left out."""
    if not _complaints.is_set():
        _complaints.set()
        print_problem("a report was left out: " + problem)


def print_problem(problem: str) -> None:
    """Print a line on stderr."""
    try:
        os.write(2, f"riseml: {problem[:400]}\n".encode("utf-8", "replace"))
    except OSError:
        return
