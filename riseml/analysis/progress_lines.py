r"""Progress in the lines that jobs print: bars of tqdm and Keras, and counts such as `Epoch 3/10`. Pure.

Each form is a row of `LINE_FORMS`, with lines that it reads. A reading is one look at one bar: how much is done of how
much. What readings mean together is in `riseml.analysis.progress`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from riseml.base.records import dataclass
from riseml.base.terminal_text import plain_line

LONGEST_STATE = 1000
"""Characters of a line, or of one state of a bar, that are read."""

REPORTED = "reported"
"""The form of what a job has reported itself, by `riseml.progress` or by the steps of its reports."""

EPOCH = "epoch"
STEP = "step"
_PERCENT = "%"
_SCALES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_UNIT = re.compile(r"s/([A-Za-z]+)|[kMGT]?([A-Za-z]+)/s")
_DIGITS = re.compile(r"[0-9]+")
_WHOLE = r"[0-9][0-9,]{0,18}"
_AMOUNT = r"[0-9]{1,18}(?:\.[0-9]{1,6})?"
_PERIOD = r"(?:[0-9]+ days?, )?[0-9]{1,4}(?::[0-9]{2}){1,2}"


@dataclass(frozen=True, slots=True)
class Reading:
    """One look at one bar or count."""

    form: str  # the name of its row
    label: str  # what stands before it, each number as `#`
    amount: float  # that is done
    of: float | None  # None: the bar has no end
    unit: str  # `step`, `epoch`, `%`; empty: not known

    @property
    def key(self) -> tuple[str, str]:
        """What the readings of one bar share."""
        return self.form, self.label


@dataclass(frozen=True, slots=True)
class LineForm:
    """One form in which programs print their progress."""

    name: str
    pattern: re.Pattern[str]
    read: Callable[[re.Match[str]], tuple[float, float | None, str]]  # amount, of, unit
    examples: tuple[str, ...]
    is_drawn: bool  # a bar, of which a later state takes the place of an earlier one; else a line of its own


def _read_tqdm(match: re.Match[str]) -> tuple[float, float | None, str]:
    rate = _UNIT.search(match["rate"])
    unit = "" if rate is None else rate[1] or rate[2] or ""
    of = float(match["of"]) * _SCALES[match["ofscale"]]
    return float(match["done"]) * _SCALES[match["scale"]], of, STEP if unit in ("it", "") else unit


def _read_open_tqdm(match: re.Match[str]) -> tuple[float, float | None, str]:
    return float(match["done"]) * _SCALES[match["scale"]], None, STEP if match["unit"] == "it" else match["unit"]


def _read_counts(match: re.Match[str]) -> tuple[float, float | None, str]:
    names = {"iter": STEP, "iteration": STEP, "global step": STEP, "global_step": STEP}
    unit = match.groupdict().get("unit", STEP).lower()
    return _to_number(match["done"]), _to_number(match["of"]), names.get(unit, unit)


def _read_percent(match: re.Match[str]) -> tuple[float, float | None, str]:
    return float(match["done"]), 100.0, _PERCENT


def _to_number(text: str) -> float:
    return float(text.replace(",", ""))


LINE_FORMS = (
    LineForm(
        "tqdm",
        re.compile(
            rf"[0-9]{{1,3}}%\|[^|\[\]]{{0,400}}\| *(?P<done>{_AMOUNT})(?P<scale>[kMGT]?)/"
            rf"(?P<of>{_AMOUNT})(?P<ofscale>[kMGT]?) *\[{_PERIOD}<(?:{_PERIOD}|\?),"
            r" *(?P<rate>[^\],]{0,40})(?:,[^\]]*)?\]"
        ),
        _read_tqdm,
        (
            " 45%|████▌     | 450/1000 [02:13<02:43,  3.40it/s]",
            "Epoch 3:  45%|████▌     | 45/100 [00:01<00:01, 33.00it/s, v_num=0, loss=0.31]",
            "Downloading:  10%|#         | 1.20M/12.0M [00:01<00:09, 1.20MB/s]",
            "  1%|          | 2/250 [00:21<44:03, 10.66s/it]",
        ),
        is_drawn=True,
    ),
    LineForm(
        "open tqdm",
        re.compile(
            rf"(?P<done>{_AMOUNT})(?P<scale>[kMGT]?)(?P<unit>[A-Za-z]{{1,12}}) \[{_PERIOD},"
            r" *[^\]]{0,200}(?:/s|s/)[^\]]{0,200}\]"
        ),
        _read_open_tqdm,
        ("450it [02:13,  3.40it/s]", "reading: 1.20MB [00:01, 1.19MB/s]"),
        is_drawn=True,
    ),
    LineForm(
        "keras",
        re.compile(rf"^ *(?P<done>{_WHOLE})/(?P<of>{_WHOLE}) +(?:\[[=>.]{{10,60}}\]|[━─╸╺]{{10,60}}(?: |$))"),
        _read_counts,
        (
            " 450/1000 [============>.................] - ETA: 1:43 - loss: 0.3100",
            "450/1000 ━━━━━━━━━━━━━━━━━━━━ 1:43 188ms/step - accuracy: 0.9 - loss: 0.31",
        ),
        is_drawn=True,
    ),
    LineForm(
        "percent",
        re.compile(r"[\[|](?=[^\]|]*[#=█━>])[#=█━>\-. ]{4,200}[\]|] *(?P<done>[0-9]{1,3}(?:\.[0-9]{1,4})?) ?%(?!\|)"),
        _read_percent,
        ("train [#########---------------] 37%", "|█████     | 50.0 %"),
        is_drawn=True,
    ),
    LineForm(
        EPOCH,
        re.compile(rf"\bepochs?[ :#=]{{0,3}}[\[(]?(?P<done>{_WHOLE}) ?(?:/|of) ?(?P<of>{_WHOLE})", re.IGNORECASE),
        lambda match: (_to_number(match["done"]), _to_number(match["of"]), EPOCH),
        ("Epoch 3/10", "Epoch [3/10], Step [400/2000], Loss: 0.31", "epoch: 3 of 10", "EPOCH 3/10 loss=0.31"),
        is_drawn=False,
    ),
    LineForm(
        STEP,
        re.compile(
            rf"\b(?P<unit>global[ _]step|step|iteration|iter|batch)(?:e?s)?[ :#=]{{0,3}}[\[(]?"
            rf"(?P<done>{_WHOLE}) ?(?:/|of) ?(?P<of>{_WHOLE})",
            re.IGNORECASE,
        ),
        _read_counts,
        ("step 400/2000", "Step [400/2000], Loss: 0.31", "iter 400 of 2,000: loss 0.31", "Batch: 4/20"),
        is_drawn=False,
    ),
)


def read_line(text: str, *, whole: bool = True) -> tuple[Reading, ...]:
    """Return what a line, or one state of it, says about progress, the outermost first; empty: nothing.

    Args:
        text: without the carriage return before it.
        whole: whether the line has ended; of an open one only bars are read, which show their own end.

    Example:
        >>> [(reading.unit, reading.amount, reading.of) for reading in read_line("Epoch [3/10], Step [400/2000]")]
        [('epoch', 3.0, 10.0), ('step', 400.0, 2000.0)]
    """
    plain = plain_line(text[: 2 * LONGEST_STATE])[:LONGEST_STATE]
    readings = [
        reading for form in LINE_FORMS if whole or form.is_drawn for reading in [_read_form(form, plain)] if reading
    ]
    drawn = [reading for reading in readings if reading.form not in (EPOCH, STEP)][:1]
    counted = [reading for reading in readings if reading.form == STEP and not drawn]
    return (*(reading for reading in readings if reading.form == EPOCH), *drawn, *counted)


def read_bar(text: str) -> Reading | None:
    """Return the state of a bar that a line is, with its label as it stands; None: it is a line of its own.

    Example:
        >>> read_bar("train 3:  45%|####  | 450/1000 [02:13<02:43, 3.4it/s]").label
        'train 3:'
    """
    plain = plain_line(text[: 2 * LONGEST_STATE])[:LONGEST_STATE]
    for form in LINE_FORMS:
        if form.is_drawn and (match := form.pattern.search(plain)) is not None:
            return Reading(form.name, plain[: match.start()].strip(), *form.read(match))
    return None


def _read_form(form: LineForm, plain: str) -> Reading | None:
    match = form.pattern.search(plain)
    if match is None:
        return None
    amount, of, unit = form.read(match)
    if of is not None and not 0 <= amount <= of:
        return None
    label = plain[: match.start()].strip() if form.is_drawn else ""
    return Reading(form.name, _DIGITS.sub("#", label)[:100], amount, of, unit) if of != 0 else None
